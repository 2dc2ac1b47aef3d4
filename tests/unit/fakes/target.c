// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// target.c -- memory of a target: posted requests are executed over real bytes, and bytes that
// were not flushed are lost when the power fails.
//
// Aligned words of 8 bytes survive as a whole, so a flush of one byte persists its word. The
// order in which words become visible before a flush does not matter, because only a power
// failure reveals it.

#include "../../../sim/model/memory_rule.h"
#include "internal.h"

#include <stdlib.h>
#include <string.h>

enum { WORD = sizeof(uint64_t), WORDS = 4096 };

struct region {
    struct region *next;
    struct sim_region checked;
    uint32_t rkey;
    uint32_t first, words; // in the arrays below
};

static struct region *regions;
static uint64_t now[WORDS], kept[WORDS], found[WORDS]; // newest, persistent, after a failure
static uint32_t used, settled[WORDS];
static struct sim_stores stores = {kept, settled};
static unsigned may_execute = UINT32_MAX;

void fake_target_reset(void) {
    while (regions) {
        struct region *next = regions->next;
        free(regions);
        regions = next;
    }
    used = 0;
    may_execute = UINT32_MAX;
}

static struct region *region_of(uint32_t rkey) {
    struct region *region = regions;
    while (region && region->rkey != rkey)
        region = region->next;
    return region;
}

static struct region *make_region(uint64_t addr, size_t size, uint32_t rkey) {
    struct region *made = fake_zeroed(sizeof(*made));
    *made = (struct region){regions,
                            {NULL, addr, size, UINT_MAX},
                            rkey,
                            used,
                            (uint32_t)((addr % WORD + size + WORD - 1) / WORD)};
    used += made->words;
    if (used > WORDS)
        abort();
    regions = made;
    return made;
}

static uint32_t word_of(const struct region *region, uint64_t addr) {
    return region->first + (uint32_t)(addr / WORD - region->checked.start / WORD);
}

static unsigned char *byte_of(const struct region *region, uint64_t *words, uint64_t addr) {
    return (unsigned char *)&words[word_of(region, addr)] + addr % WORD;
}

const unsigned char *fake_target(uint64_t addr, size_t size, uint32_t rkey) {
    FAKE_LOCKED;
    struct region *region = region_of(rkey);
    if (!region)
        region = make_region(addr, size, rkey);
    memset(&now[region->first], 0, region->words * sizeof(*now));
    memset(&kept[region->first], 0, region->words * sizeof(*kept));
    stores.count = 0;
    return byte_of(region, found, addr);
}

void fake_target_without_atomics(uint32_t rkey) {
    FAKE_LOCKED;
    region_of(rkey)->checked.access &= ~(unsigned)IBV_ACCESS_REMOTE_ATOMIC;
}

void fake_stop_target_after(unsigned operations) {
    FAKE_LOCKED;
    may_execute = operations;
}

static uint64_t survive(void *survivors) { // the next bit decides about the whole word
    uint64_t *const bits = survivors, first = *bits & 1;
    *bits = *bits >> 1 | first << 63;
    return -first;
}

size_t fake_power_failure(uint64_t survivors) {
    FAKE_LOCKED;
    memcpy(found, kept, sizeof(found));
    sim_lose_power(&stores, found, survive, &survivors);
    return stores.count;
}

// ---- execution -----------------------------------------------------------------------------

static void add_stores(uint32_t qp_num, struct region *region, uint64_t addr, uint64_t len) {
    for (uint32_t word = word_of(region, addr); word <= word_of(region, addr + len - 1); word++)
        sim_add_store(&stores, (struct sim_store){word, qp_num, now[word]});
}

static void persist(uint32_t qp_num, struct region *region, uint64_t addr, uint64_t len) {
    sim_flush_stores(&stores, qp_num, word_of(region, addr),
                     word_of(region, addr + len - 1) + 1);
}

// rxe_mr.c, copy_data(): copies SGE by SGE, and checks each against its region.
static bool copy_sg_list(const struct ibv_qp *qp, const struct fake_post *post,
                         unsigned char *bytes, bool is_read) {
    for (int i = 0; i < post->num_sge; i++) {
        const struct ibv_sge *sge = &post->sg_list.sges[i];
        unsigned char *local = (unsigned char *)(uintptr_t)sge->addr;
        if (fake_check_sge(sge, qp->pd, is_read))
            return false;
        memcpy(is_read ? local : bytes, is_read ? bytes : local, sge->length);
        bytes += sge->length;
    }
    return true;
}

static bool write_bytes(const struct ibv_qp *qp, const struct fake_post *post, uint64_t length,
                        struct region *region) {
    unsigned char *bytes = byte_of(region, now, post->remote_addr);
    if (post->inlined_bytes > 0)
        memcpy(bytes, post->inlined, post->inlined_bytes);
    else if (!copy_sg_list(qp, post, bytes, false))
        return false;
    add_stores(qp->qp_num, region, post->remote_addr, length);
    return true;
}

// Linux 7.3, drivers/infiniband/sw/rxe/rxe_resp.c: process_flush() writes back the range, or
// the whole region. On a device with native flush, a read makes nothing persistent, as on rxe,
// which stores with the processor (rxe_mr.c, rxe_mr_copy_xarray()).
static void apply_memory_rule(const struct ibv_qp *qp, const struct sim_send *send,
                              struct region *region) {
    const bool is_of_region =
        send->opcode == SIM_WR_FLUSH && send->flush_level == SIM_FLUSH_REGION;
    const uint64_t start = is_of_region ? region->checked.start : send->remote_addr;
    const uint64_t rest = region->checked.start + region->checked.length - start;
    const uint64_t length = is_of_region ? rest : send->length;
    const enum sim_reach reach =
        sim_made_persistent(SIM_FLUSH_ONLY, !fake_profile()->has_native_flush, send->opcode,
                            send->flush_type, length);
    if (reach != SIM_NO_WRITES)
        persist(qp->qp_num, region, start, reach == SIM_WRITES_IN_REST ? rest : length);
}

// rxe_comp.c, do_atomic(), writes the previous value to the memory of the request. This makes
// nothing persistent.
static bool do_atomic(const struct ibv_qp *qp, const struct fake_post *post,
                      struct region *region) {
    uint64_t *const word = &now[word_of(region, post->remote_addr)];
    uint64_t before = *word;
    *word = sim_atomic_result((uint32_t)post->opcode, before, post->compare_add, post->swap);
    if (*word != before)
        add_stores(qp->qp_num, region, post->remote_addr, WORD);
    return copy_sg_list(qp, post, (unsigned char *)&before, true);
}

static bool execute(const struct ibv_qp *qp, const struct fake_post *post) {
    const struct sim_send send = fake_send_of(post);
    struct region *region = region_of(post->rkey);
    if (post->opcode == IBV_WR_SEND || post->opcode == IBV_WR_SEND_WITH_IMM)
        return true;
    if (sim_check_target(fake_profile(), &send, UINT_MAX, region ? &region->checked : NULL,
                         NULL))
        return false;
    if (region)
        apply_memory_rule(qp, &send, region);
    switch (post->opcode) {
    case SIM_WR_FLUSH:
        return true;
    case IBV_WR_RDMA_READ:
        return send.length == 0 ||
               copy_sg_list(qp, post, byte_of(region, now, post->remote_addr), true);
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
    case IBV_WR_ATOMIC_CMP_AND_SWP:
        return do_atomic(qp, post, region);
    default:
        return send.length == 0 || write_bytes(qp, post, send.length, region);
    }
}

// A failed operation moves its queue pair to the error state: rxe_resp.c, do_class_ac_error()
// and rxe_comp.c, rxe_completer().
void fake_execute(struct fake_qp *qp, const struct fake_post *post) {
    struct ibv_qp *base = &qp->qp.ex.qp_base;
    if (!regions || !qp->connected || base->state == IBV_QPS_ERR || may_execute == 0)
        return;
    may_execute--;
    if (!execute(base, post))
        base->state = IBV_QPS_ERR;
}
