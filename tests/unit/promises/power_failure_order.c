// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// power_failure_order.c -- power failures after several operations: of several regions and
// connections, at any point, and after an operation that the target refuses

#include "target.h"

#include <stdlib.h>

// Each flush covers only its own region, whatever other operations are in the list.
TEST_THAT(regions_are_flushed_one_by_one) {
    for (unsigned i = 0; i < 6 * 4; i++) {
        const bool native = i & 1;
        const enum target_way way = i / 2 % TARGET_WAYS;
        target_begin(native);
        struct step steps[4] = {{target_write(0, 0, 40, 9), 0},
                                {target_write(0, 1, 200, 9), 0}};
        size_t count = 2;
        for (int r = 0; r < TARGET_REGIONS; r++)
            if (i / 6 & 1U << r) {
                const size_t from = steps[r].o.remote_offset;
                steps[count++] = (struct step){target_flush(r, from, from + 9), 0};
                memcpy(target_expected[r] + from, target_worlds[0].memory + TARGET_SOURCE, 9);
            }
        target_run(steps, count, way);
        fake_power_failure(0);
        for (int r = 0; r < TARGET_REGIONS; r++)
            assert_memory_equal(target_found[r], target_expected[r], TARGET_SIZE);
        target_end();
    }
}

// The half word of the other connection was not flushed: it is lost unless it was there before.
TEST_THAT(connections_flush_their_own_words) {
    for (unsigned i = 0; i < 12; i++) {
        const bool native = i & 1, other_is_first = i / 6;
        const enum target_way way = i / 2 % TARGET_WAYS;
        target_begin(native);
        const struct step mine = {target_write(0, 0, 16, 4), 0};
        const struct step other = {target_write(1, 0, 20, 4), 1};
        const struct step steps[] = {other_is_first ? other : mine,
                                     other_is_first ? mine : other,
                                     {target_flush(0, 16, 24), 0}};
        target_run(steps, LENGTH(steps), way);
        memcpy(target_expected[0] + 16, target_worlds[0].memory + TARGET_SOURCE, 4);
        if (other_is_first)
            memcpy(target_expected[0] + 20, target_worlds[1].memory + TARGET_SOURCE, 4);
        assert_int_equal(fake_power_failure(0), other_is_first ? 0 : 1);
        assert_memory_equal(target_found[0], target_expected[0], TARGET_SIZE);
        target_end();
    }
}

// A record, then the tail that counts it: wherever the power fails, no tail is found without
// its record, and none is missing whose flush was executed.
TEST_THAT(tail_never_comes_before_its_record) {
    static const size_t words[] = {0, 3, 0, 1, 0}; // not persistent after each step
    const char *const tail = "tail: 1";
    for (unsigned i = 0; i < 6; i++) {
        const bool native = i & 1;
        const enum target_way way = i / 2 % TARGET_WAYS;
        target_begin(native);
        struct rpma_work publish = {.type = RPMA_WORK_ATOMIC_WRITE,
                                    .remote = target_remotes[0],
                                    .remote_offset = 0,
                                    .flags = RPMA_F_COMPLETION_ALWAYS};
        memcpy(&publish.value, tail, sizeof(publish.value));
        const struct step steps[] = {{target_write(0, 0, 64, 20), 0},
                                     {target_flush(0, 64, 84), 0},
                                     {publish, 0},
                                     {target_flush(0, 0, WORD), 0}};
        for (unsigned executed = 0; executed <= LENGTH(steps); executed++) {
            target_erase();
            fake_target_stops(executed);
            target_run(steps, LENGTH(steps), way);
            const size_t lost = fake_power_failure(0);
            assert_int_equal(lost, words[executed]);
            for (uint64_t survivors = 0; survivors < (uint64_t)1 << lost; survivors++) {
                fake_power_failure(survivors);
                const bool published = memcmp(target_found[0], tail, WORD) == 0;
                if (!published)
                    assert_memory_equal(target_found[0], target_expected[0], WORD);
                if (published)
                    assert_memory_equal(target_found[0] + 64,
                                        target_worlds[0].memory + TARGET_SOURCE, 20);
                assert_true(published || executed < LENGTH(steps));
            }
        }
        target_end();
    }
}

// ---- reads, and what the target refuses ----------------------------------------------------

// A read also returns bytes that were not flushed. It persists nothing on a device with native
// flush; elsewhere it does the same as an emulated flush.
TEST_THAT(reads_bring_what_was_written) {
    for (unsigned i = 0; i < 12; i++) {
        const bool native = i & 1, has_list = i / 6;
        const enum target_way way = i / 2 % TARGET_WAYS;
        target_begin(native);
        const struct handles *h = &target_worlds[0].h;
        const struct rpma_sge sgl[] = {{h->mr, 2000, 10}, {h->mr, 1510, 90}};
        struct rpma_work read = target_write(0, 1, 33, 100);
        read.type = RPMA_WORK_READ;
        read.local.offset = 1500;
        if (has_list) {
            read.sgl = sgl;
            read.nsge = LENGTH(sgl);
        }
        const struct step steps[] = {{target_write(0, 1, 33, 100), 0}, {read, 0}};
        target_run(steps, LENGTH(steps), way);
        unsigned char *const memory = target_worlds[0].memory;
        if (has_list)
            memcpy(memory + 1500, memory + 2000, 10);
        assert_memory_equal(memory + 1500, memory + TARGET_SOURCE, 100);
        assert_int_equal(fake_power_failure(0), native && BUILD_FLUSHES ? 14 : 0);
        target_end();
    }
}

// A refused operation breaks the connection, so nothing behind it is executed.
TEST_THAT(nothing_follows_what_is_refused) {
    enum { KEY, WRITE_RANGE, FLUSH_KEY, FLUSH_RANGE, REFUSALS };
    for (unsigned i = 0; i < 6 * REFUSALS; i++) {
        const bool native = i & 1;
        const enum target_way way = i / 2 % TARGET_WAYS;
        target_begin(native);
        struct rpma_mr_remote *wrong = target_remote(target_regions[0].addr, 79);
        struct rpma_work refused[] = {[KEY] = target_write(0, 0, 0, 8),
                                      [WRITE_RANGE] = target_write(0, 0, TARGET_SIZE - 7, 8),
                                      [FLUSH_KEY] = target_flush(0, 0, 8),
                                      [FLUSH_RANGE] =
                                          target_flush(0, TARGET_SIZE - 7, TARGET_SIZE + 1)};
        refused[KEY].remote = refused[FLUSH_KEY].remote = wrong;
        // An emulated flush does not read beyond the end of the region.
        const bool reads = i / 6 == FLUSH_RANGE && !(native && BUILD_FLUSHES);
        const struct step steps[] = {
            {target_write(0, 0, 40, 16), 0}, {refused[i / 6], 0}, {target_flush(0, 40, 56), 0}};
        target_run(steps, LENGTH(steps), way);
        if (reads)
            memcpy(target_expected[0] + 40, target_worlds[0].memory + TARGET_SOURCE, 16);
        assert_int_equal(fake_power_failure(0), reads ? 0 : 2);
        assert_memory_equal(target_found[0], target_expected[0], TARGET_SIZE);
        MUST(rpma_mr_remote_delete(&wrong));
        target_end();
    }
}
