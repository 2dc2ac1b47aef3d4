// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// target.c -- see target.h

#include "target.h"

const struct target_region target_regions[] = {{0x10000, 77}, {0x20005, 78}};
struct world target_worlds[2];
struct rpma_mr_remote *target_remotes[TARGET_REGIONS];
const unsigned char *target_found[TARGET_REGIONS];
unsigned char target_expected[TARGET_REGIONS][TARGET_SIZE];

void target_erase(void) {
    for (int r = 0; r < TARGET_REGIONS; r++)
        target_found[r] =
            fake_target(target_regions[r].addr, TARGET_SIZE, target_regions[r].rkey);
    memset(target_expected, 0, sizeof(target_expected));
}

struct rpma_mr_remote *target_remote(uint64_t addr, uint32_t rkey) {
    // Every flush may be native, and it takes remote atomics.
    return packed_remote(addr, TARGET_SIZE, rkey, WORLD_EVERY_USAGE, 0x31);
}

void target_begin(bool native) {
    fake_device()->native_flush = native && BUILD_FLUSHES;
    fake_device()->native_atomic_write = native && BUILD_WRITES_ATOMICALLY;
    for (size_t c = 0; c < LENGTH(target_worlds); c++) {
        world_conn(&target_worlds[c], &(const struct shape){.max_sge = OPERATION_MOST_SGES});
        MUST(rpma_batch_new(target_worlds[c].h.conn, TARGET_MOST_STEPS,
                            &target_worlds[c].h.batch));
        for (size_t i = 0; i < sizeof(target_worlds[c].memory); i++)
            target_worlds[c].memory[i] = (unsigned char)(1 + i % 251);
    }
    for (int r = 0; r < TARGET_REGIONS; r++)
        target_remotes[r] = target_remote(target_regions[r].addr, target_regions[r].rkey);
    target_erase();
}

void target_end(void) {
    for (int r = 0; r < TARGET_REGIONS; r++)
        MUST(rpma_mr_remote_delete(&target_remotes[r]));
    for (size_t c = 0; c < LENGTH(target_worlds); c++)
        world_drop(&target_worlds[c]);
}

// The number of first steps that use the same connection.
static size_t in_a_row(const struct step *steps, size_t count) {
    size_t row = 1;
    while (row < count && row < TARGET_MOST_STEPS && steps[row].conn == steps[0].conn)
        row++;
    return row;
}

void target_run(const struct step *steps, size_t count, enum target_way way) {
    for (size_t row; count > 0; steps += row, count -= row) {
        struct rpma_work work[TARGET_MOST_STEPS];
        const struct handles *h = &target_worlds[steps->conn].h;
        row = way == TARGET_ONE_BY_ONE ? 1 : in_a_row(steps, count);
        for (size_t i = 0; i < row; i++)
            work[i] = steps[i].o;
        if (way == TARGET_ONE_BY_ONE && work[0].nsge == 0) {
            MUST(operation_plain(&work[0], h->conn));
        } else if (way != TARGET_BATCHED) {
            MUST(rpma_post(h->conn, work, (uint32_t)row, NULL));
        } else {
            for (size_t i = 0; i < row; i++)
                MUST(rpma_batch_add(h->batch, &work[i]));
            MUST(rpma_batch_post(h->batch, NULL));
            MUST(rpma_batch_reset(h->batch));
        }
    }
}

struct rpma_work target_flush(int region, size_t from, size_t to) {
    return (struct rpma_work){.type = RPMA_WORK_FLUSH,
                              .remote = target_remotes[region],
                              .remote_offset = from,
                              .flush_len = to - from,
                              .flush_type = RPMA_FLUSH_TYPE_PERSISTENT,
                              .flags = RPMA_F_COMPLETION_ALWAYS};
}

struct rpma_work target_write(unsigned conn, int region, size_t offset, size_t len) {
    return (struct rpma_work){.type = RPMA_WORK_WRITE,
                              .local = {target_worlds[conn].h.mr, TARGET_SOURCE, len},
                              .remote = target_remotes[region],
                              .remote_offset = offset,
                              .flags = RPMA_F_COMPLETION_ON_ERROR};
}
