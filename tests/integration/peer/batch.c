// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// batch.c -- commands for the life of a batch; and a prepared one that publishes versions of
// memory to the other side, which checks each

#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "await.h"
#include "operation.h"

struct rpma_batch *the_batch(const struct args *args) {
    struct rpma_batch *batch = world.batch[arg_slot(args, "batch", MAX_OTHERS)];
    if (batch == NULL)
        bad_script("%s: no such batch", args->verb);
    return batch;
}

static int do_batch_new(const struct args *args) {
    return rpma_batch_new(the_conn(args), (uint32_t)arg_number(args, "ops"),
                          &world.batch[arg_slot(args, "batch", MAX_OTHERS)]);
}

/* The answer says how many operations the device took, even if the post failed. */
static int do_batch_post(const struct args *args) {
    uint32_t posted = UINT32_MAX;
    int ret = rpma_batch_post(the_batch(args), &posted);
    reply("posted=%u", posted);
    return ret;
}

static int do_batch_size(const struct args *args) {
    uint32_t size = UINT32_MAX, room = UINT32_MAX;
    int ret = rpma_batch_get_size(the_batch(args), &size, &room);
    reply("size=%u room=%u", size, room);
    return ret;
}

static int do_batch_reset(const struct args *args) {
    return rpma_batch_reset(the_batch(args));
}

static int do_batch_delete(const struct args *args) {
    return rpma_batch_delete(&world.batch[arg_slot(args, "batch", MAX_OTHERS)]);
}

/* Each piece of each version has a pattern of its own. */
static uint64_t seed_of(uint64_t version, int piece) {
    return version * MAX_ELEMENTS + (uint64_t)piece;
}

static char *address_of(const struct args *args, const struct piece *piece) {
    if (piece->memory >= MAX_REGIONS || world.memory[piece->memory].base == NULL ||
        piece->offset + piece->len > world.memory[piece->memory].size)
        bad_script("%s: outside the memory", args->verb);
    return world.memory[piece->memory].base + piece->offset;
}

/* Posts the batch, whose last operation alone is signaled. The other side's answer arrives
 * after that completion, or before it. No other operations are outstanding. */
static int post_version(const struct args *args, struct rpma_cq *cq) {
    uint32_t posted = 0;
    struct ibv_wc wc;
    int ret = rpma_recv(the_conn(args), world.mr[arg_slot(args, "mr", MAX_REGIONS)],
                        arg_number(args, "off"), 8, NULL);
    if (ret == 0)
        ret = rpma_batch_post(the_batch(args), &posted);
    if (ret == 0 && posted != arg_number(args, "ops"))
        ret = ERR_MISMATCH;
    for (int i = 0; i < 2 && ret == 0; i++)
        ret = await_completion(cq, &wc);
    return ret;
}

/* Posts the same batch for each version, with other bytes in the pieces each time; the next
 * version waits until the other side has checked this one. */
static int do_publish(const struct args *args) {
    static struct piece pieces[MAX_ELEMENTS];
    int count = read_pieces(args, pieces);
    uint64_t versions = arg_number(args, "versions");
    struct rpma_cq *cq = NULL;
    uint64_t version = 0;
    int ret = rpma_conn_get_cq(the_conn(args), &cq);
    while (ret == 0 && version < versions) {
        for (int i = 0; i < count; i++)
            pattern_fill(address_of(args, &pieces[i]), pieces[i].len, seed_of(version, i));
        ret = post_version(args, cq);
        version += ret == 0;
    }
    reply("versions=%llu", (unsigned long long)version);
    return ret;
}

/* Waits for the other side's atomic write. */
static int await_flag(_Atomic uint64_t *flag, uint64_t wanted) {
    int64_t deadline = now_ms() + 600000;
    while (atomic_load_explicit(flag, memory_order_acquire) != wanted) {
        if (now_ms() > deadline) {
            reply("flag=0x%llx", (unsigned long long)atomic_load(flag));
            return ERR_TIMEOUT;
        }
        sched_yield();
    }
    return 0;
}

static int check_version(const struct args *args, const struct piece *pieces, int count,
                         uint64_t version) {
    for (int i = 0; i < count; i++) {
        const char *bytes = address_of(args, &pieces[i]);
        size_t equal = pattern_check(bytes, pieces[i].len, seed_of(version, i));
        if (equal != pieces[i].len) {
            reply("piece=%d at=%zu byte=0x%02x", i, equal, (unsigned char)bytes[equal]);
            return ERR_MISMATCH;
        }
    }
    return 0;
}

/* Checks each version as soon as the flag at off= of memory mr= announces it, resets the flag,
 * and tells the other side so. */
static int do_follow(const struct args *args) {
    static struct piece pieces[MAX_ELEMENTS];
    int count = read_pieces(args, pieces);
    uint64_t versions = arg_number(args, "versions");
    size_t mr = arg_slot(args, "mr", MAX_REGIONS);
    size_t offset = arg_number(args, "off");
    struct piece place = {mr, offset, sizeof(uint64_t)};
    _Atomic uint64_t *flag = (_Atomic uint64_t *)(void *)address_of(args, &place);
    struct rpma_cq *cq = NULL;
    struct ibv_wc wc;
    uint64_t wanted = 0;
    uint64_t version = 0;
    arg_bytes(args, "bytes", &wanted, sizeof(wanted));
    int ret = rpma_conn_get_cq(the_conn(args), &cq);
    while (ret == 0 && version < versions) {
        ret = await_flag(flag, wanted);
        if (ret == 0)
            ret = check_version(args, pieces, count, version);
        atomic_store(flag, 0);
        if (ret == 0)
            ret = rpma_send(the_conn(args), world.mr[mr], offset, 8, RPMA_F_COMPLETION_ALWAYS,
                            NULL);
        if (ret == 0)
            ret = await_completion(cq, &wc);
        version += ret == 0;
    }
    reply("versions=%llu", (unsigned long long)version);
    return ret;
}

const struct command batch_commands[] = {
    {"batch-new", do_batch_new},
    {"batch-post", do_batch_post},
    {"batch-size", do_batch_size},
    {"batch-reset", do_batch_reset},
    {"batch-delete", do_batch_delete},
    {"publish", do_publish},
    {"follow", do_follow},
    {NULL, NULL},
};
