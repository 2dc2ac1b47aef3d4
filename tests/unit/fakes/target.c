// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// target.c -- memory of a target: posted requests are executed over real bytes, and bytes that
// were not flushed are lost when the power fails.
//
// Memory keeps aligned words of 8 bytes whole, so a flush of one byte keeps its word. The order
// in which words become visible before a flush does not matter, because only a power failure
// looks at them.

#include "internal.h"

#include <stdlib.h>
#include <string.h>

enum { WORD = sizeof(uint64_t), FLUSH_PERSISTENT = 2, FLUSH_MR = 1 };

struct region {
    struct region *next;
    uint64_t addr, size;
    uint32_t rkey;
    bool no_atomics; // registered without IBV_ACCESS_REMOTE_ATOMIC
    unsigned words;
    uint64_t *now, *kept, *found; // words: newest, persistent, after a power failure
    unsigned *settled;            // for each word: older stores than this one cannot return
};

// A word that was written and is not persistent.
struct store {
    struct region *region;
    unsigned word;
    uint64_t value;
    unsigned qp_num;
};

static struct region *regions;
static struct store *stores; // in the order of execution
static unsigned store_count;
static unsigned may_execute = UINT32_MAX;

void fake_target_reset(void) {
    while (regions) {
        struct region *next = regions->next;
        free(regions->now);
        free(regions->settled);
        free(regions);
        regions = next;
    }
    may_execute = UINT32_MAX;
}

static struct region *region_of(uint32_t rkey) {
    struct region *found = regions;
    while (found && found->rkey != rkey)
        found = found->next;
    return found;
}

static struct region *make_region(uint64_t addr, size_t size, uint32_t rkey) {
    struct region *made = fake_zeroed(sizeof(*made));
    *made = (struct region){.next = regions, .addr = addr, .size = size, .rkey = rkey};
    made->words = (unsigned)((addr % WORD + size + WORD - 1) / WORD);
    made->now = fake_zeroed(made->words * 3 * sizeof(*made->now));
    made->settled = fake_zeroed(made->words * sizeof(*made->settled));
    made->kept = made->now + made->words;
    made->found = made->kept + made->words;
    regions = made;
    return made;
}

static unsigned word_of(const struct region *region, uint64_t addr) {
    return (unsigned)((addr - (region->addr & ~(uint64_t)(WORD - 1))) / WORD);
}

static unsigned char *byte_of(const struct region *region, uint64_t *words, uint64_t addr) {
    return (unsigned char *)&words[word_of(region, addr)] + addr % WORD;
}

const unsigned char *fake_target(uint64_t addr, size_t size, uint32_t rkey) {
    FAKE_LOCKED;
    struct region *region = region_of(rkey);
    if (!region)
        region = make_region(addr, size, rkey);
    memset(region->now, 0, 3 * region->words * sizeof(*region->now));
    store_count = 0;
    return byte_of(region, region->found, addr);
}

void fake_target_without_atomics(uint32_t rkey) {
    FAKE_LOCKED;
    region_of(rkey)->no_atomics = true;
}

void fake_stop_target_after(unsigned operations) {
    FAKE_LOCKED;
    may_execute = operations;
}

size_t fake_power_failure(uint64_t survivors) {
    FAKE_LOCKED;
    for (struct region *r = regions; r; r = r->next)
        memcpy(r->found, r->kept, r->words * sizeof(*r->kept));
    for (unsigned i = 0; i < store_count; i++)
        if (survivors >> i % 64 & 1)
            stores[i].region->found[stores[i].word] = stores[i].value;
    return store_count;
}

// ---- execution -----------------------------------------------------------------------------

static void add_stores(unsigned qp_num, struct region *region, uint64_t addr, uint64_t len) {
    const unsigned first = word_of(region, addr), end = word_of(region, addr + len - 1) + 1;
    stores = realloc(stores, (store_count + end - first) * sizeof(*stores));
    for (unsigned word = first; word < end; word++)
        stores[store_count++] = (struct store){region, word, region->now[word], qp_num};
}

// Makes words of earlier writes of that queue pair persistent. Older values of these words
// cannot survive, whichever queue pair wrote them.
static void persist(unsigned qp_num, struct region *region, uint64_t addr, uint64_t len) {
    if (len == 0) // rxe_flush_pmem_iova() writes nothing back
        return;
    const unsigned first = word_of(region, addr), last = word_of(region, addr + len - 1);
    unsigned left = 0;
    for (unsigned i = 0; i < store_count; i++) {
        const struct store *s = &stores[i];
        if (s->region != region || s->qp_num != qp_num || s->word < first || s->word > last)
            continue;
        region->kept[s->word] = s->value;
        region->settled[s->word] = i + 1;
    }
    for (unsigned i = 0; i < store_count; i++)
        if (i >= stores[i].region->settled[stores[i].word])
            stores[left++] = stores[i];
    store_count = left;
    memset(region->settled, 0, region->words * sizeof(*region->settled));
}

// rxe_mr.c, copy_data(): copies one element after the other, each within its region.
static bool copy_elements(const struct fake_post *post, unsigned char *bytes, bool is_read) {
    for (int i = 0; i < post->num_sge; i++) {
        const struct ibv_sge *sge = &post->elements.sges[i];
        const struct fake_mr *mr = fake_region(sge->lkey);
        unsigned char *local = (unsigned char *)(uintptr_t)sge->addr;
        if (!mr || !sim_contains((uintptr_t)mr->mr.addr, mr->mr.length, sge->addr, sge->length))
            return false;
        memcpy(is_read ? local : bytes, is_read ? bytes : local, sge->length);
        bytes += sge->length;
    }
    return true;
}

static bool has_inline_data(const struct fake_post *post) { // the request itself has the bytes
    return post->opcode == SIM_WR_ATOMIC_WRITE ||
           sim_is_inline((uint32_t)post->opcode, post->flags);
}

static uint64_t length_of(const struct fake_post *post) {
    uint64_t length = 0;
    if (post->opcode == SIM_WR_FLUSH)
        return post->flush_len;
    if (has_inline_data(post))
        return post->inlined_bytes;
    for (int i = 0; i < post->num_sge; i++)
        length += post->elements.sges[i].length;
    return length;
}

static bool write_bytes(unsigned qp_num, const struct fake_post *post, struct region *region) {
    unsigned char *bytes = byte_of(region, region->now, post->remote_addr);
    if (has_inline_data(post))
        memcpy(bytes, post->inlined, post->inlined_bytes);
    else if (!copy_elements(post, bytes, false))
        return false;
    add_stores(qp_num, region, post->remote_addr, length_of(post));
    return true;
}

// A read completes after the writes that its device did before: by the ordering rules of PCI
// (Linux 7.3, Documentation/PCI/msi-howto.rst, has them for a read of the processor) it pushes
// these to memory, which keeps them if the target has direct write. A flush reads up to 8
// bytes, not the whole range, so the fake persists from the first byte read to the end of the
// region. A real device persists more, and a program may rely on less; so a test detects a read
// at a wrong address. On a device that flushes natively, a read persists nothing: that is rxe,
// which stores with the processor (rxe_mr.c, rxe_mr_copy_xarray()).
static bool read_bytes(unsigned qp_num, const struct fake_post *post, struct region *region) {
    const uint64_t offset = post->remote_addr - region->addr;
    if (!fake_profile()->has_native_flush)
        persist(qp_num, region, post->remote_addr, region->size - offset);
    return copy_elements(post, byte_of(region, region->now, post->remote_addr), true);
}

// rxe_resp.c, check_rkey(), looks for IB_ACCESS_REMOTE_ATOMIC of 8 bytes; rxe_mr.c,
// rxe_mr_do_atomic_op(), refuses an unaligned address, adds or swaps in the byte order of the
// processor, and yields what was there; rxe_comp.c, do_atomic(), writes that to the memory of
// the request. The previous value does not become persistent by it.
static bool do_atomic(unsigned qp_num, const struct fake_post *post, struct region *region) {
    if (region->no_atomics || post->remote_addr % WORD != 0)
        return false;
    uint64_t *const word = &region->now[word_of(region, post->remote_addr)];
    uint64_t before = *word;
    if (post->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
        *word += post->compare_add;
    else if (before == post->compare_add)
        *word = post->swap;
    if (*word != before)
        add_stores(qp_num, region, post->remote_addr, WORD);
    return copy_elements(post, (unsigned char *)&before, true);
}

// Linux 7.3, drivers/infiniband/sw/rxe/rxe_resp.c: process_flush() writes back the range, or
// the whole region, only for a persistent flush; check_rkey() checks the key and the range,
// unless no byte is read or written. rxe_mr.c, rxe_mr_do_atomic_write(), refuses an unaligned
// address.
static bool execute(unsigned qp_num, const struct fake_post *post) {
    const uint64_t length = length_of(post);
    struct region *region = region_of(post->rkey);
    if (post->opcode == IBV_WR_SEND || post->opcode == IBV_WR_SEND_WITH_IMM)
        return true;
    if (post->opcode != SIM_WR_FLUSH && length == 0)
        return true;
    if (!region || !sim_contains(region->addr, region->size, post->remote_addr, length))
        return false;
    switch (post->opcode) {
    case SIM_WR_FLUSH:
        if (post->flush_type & FLUSH_PERSISTENT && post->flush_level == FLUSH_MR)
            persist(qp_num, region, region->addr, region->size);
        else if (post->flush_type & FLUSH_PERSISTENT)
            persist(qp_num, region, post->remote_addr, length);
        return true;
    case IBV_WR_RDMA_READ:
        return read_bytes(qp_num, post, region);
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
    case IBV_WR_ATOMIC_CMP_AND_SWP:
        return do_atomic(qp_num, post, region);
    case SIM_WR_ATOMIC_WRITE:
        if (post->remote_addr % WORD != 0)
            return false;
        // fall through
    default:
        return write_bytes(qp_num, post, region);
    }
}

// A failed operation moves its queue pair to the error state: rxe_resp.c, do_class_ac_error()
// and rxe_comp.c, rxe_completer().
void fake_execute(struct fake_qp *qp, const struct fake_post *post) {
    struct ibv_qp *base = &qp->qp.ex.qp_base;
    if (!regions || base->state != IBV_QPS_RTS || may_execute == 0)
        return;
    may_execute--;
    if (!execute(base->qp_num, post))
        base->state = IBV_QPS_ERR;
}
