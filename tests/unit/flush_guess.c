// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// flush_guess.c -- flushes of which nobody said that the other side serves them: what the log
// says at the end of the connection when that was wrong.

#include "world.h"

#include <stdlib.h>

static struct world w;

static int flush(void) {
    return rpma_flush(w.h.conn, w.h.remote, 8, 8, RPMA_FLUSH_TYPE_VISIBILITY,
                      RPMA_F_COMPLETION_ALWAYS, NULL);
}

// A connection on a device that has both operations, or neither.
static void new_conn(bool native) {
    fake_device()->native_flush = fake_device()->native_atomic_write = native;
    world_conn(&w, &(const struct shape){.name = "a guess"});
}

static const struct ending {
    unsigned statement;
    bool flushes, fails, no_query, warns;
} endings[] = {
    {SILENT, true, true, false, true},
    {SILENT, true, false, false, false},               // nothing went wrong
    {SILENT, false, true, false, false},               // something else went wrong
    {SILENT, true, true, true, false},                 // the device does not say
    {SERVES | SERVES_FLUSH, true, true, false, false}, // they knew
    {SERVES, true, true, false, false},
};

static void fail_an_operation(void) {
    const struct ibv_wc wc = {.status = IBV_WC_REM_ACCESS_ERR, .qp_num = world_qp(&w)->qp_num};
    fake_complete(fake_cq_on(world_cq_fd(world_cq(&w)), 0), &wc);
}

static void expect_line(bool native) {
    const struct logged_line *line = logged_line(RPMA_LOG_LEVEL_WARNING, 0);
    assert_int_equal(logged_count(RPMA_LOG_LEVEL_WARNING), 1);
    assert_non_null(
        strstr(line->message, native ? "serves native flushes" : "serves emulated flushes"));
    assert_non_null(
        strstr(line->message, native ? "RPMA_FLUSH=emulated" : "RPMA_MR_USAGE_READ_SRC"));
    if (native) // the descriptor of a side without it carries no statement
        assert_non_null(strstr(line->message, "if it has direct write to PMem"));
}

static void end(const struct ending *e, bool native, bool by_batch, bool disconnects) {
    fake_reset();
    new_conn(native);
    world_apply(&w, e->statement);
    if (by_batch) {
        MUST(rpma_batch_new(w.h.conn, 1, &w.h.batch));
        if (e->flushes)
            MUST(rpma_batch_flush(w.h.batch, w.h.remote, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY, 1,
                                  NULL));
        MUST(rpma_batch_delete(&w.h.batch));
    } else if (e->flushes) {
        MUST(flush());
    }
    if (e->fails)
        fail_an_operation();
    fake_device()->no_query = e->no_query;
    unsigned warnings = 0;
    if (disconnects) {
        MUST(rpma_conn_disconnect(w.h.conn));
        warnings = logged_count(RPMA_LOG_LEVEL_WARNING);
        if (e->warns)
            expect_line(native && BUILD_FLUSHES);
    }
    MUST(rpma_conn_delete(&w.h.conn));
    if (!disconnects && e->warns)
        expect_line(native && BUILD_FLUSHES);
    assert_int_equal(warnings + logged_count(RPMA_LOG_LEVEL_WARNING), e->warns);
    world_drop(&w);
}

// One line at the end of the connection, and none for a pair that works.
static void wrong_guess_is_told(void **state) {
    (void)state;
    for (size_t i = 0; i < LENGTH(endings); i++)
        for (int way = 0; way < 8; way++)
            end(&endings[i], way & 1, way & 2, way & 4);
}

// A refused flush was not posted: it is not what failed.
static void refused_flush_is_no_guess(void **state) {
    (void)state;
    new_conn(true);
    world_apply(&w, 0);
    MUST(rpma_batch_new(w.h.conn, 1, &w.h.batch));
    EXPECT_ERROR(rpma_flush(w.h.conn, w.h.remote, 0, 8, RPMA_FLUSH_TYPE_PERSISTENT, 1, NULL),
                 RPMA_E_NOSUPP, "direct write to PMem not enabled", "direct write to PMem");
    EXPECT_ERROR(
        rpma_batch_flush(w.h.batch, w.h.remote, 0, 8, RPMA_FLUSH_TYPE_PERSISTENT, 1, NULL),
        RPMA_E_NOSUPP, "direct write to PMem not enabled", "direct write to PMem");
    fail_an_operation();
    MUST(rpma_batch_delete(&w.h.batch));
    MUST(rpma_conn_delete(&w.h.conn));
    assert_int_equal(logged_count(RPMA_LOG_LEVEL_WARNING), 0);
    world_drop(&w);
}

// What was stated in the end counts, not what was tried before.
static void statement_ends_the_guess(void **state) {
    (void)state;
    new_conn(true);
    MUST(flush());
    world_apply(&w, SERVES | SERVES_FLUSH);
    fail_an_operation();
    MUST(rpma_conn_delete(&w.h.conn));
    assert_int_equal(logged_count(RPMA_LOG_LEVEL_WARNING), 0);
    world_drop(&w);
}

// Other threads may use the connection while one of them ends it.
static void own_disconnection_is_no_failure(void **state) {
    (void)state;
    new_conn(true);
    MUST(rpma_conn_disconnect(w.h.conn));
    MUST(flush());
    MUST(rpma_conn_disconnect(w.h.conn));
    assert_int_equal(logged_count(RPMA_LOG_LEVEL_WARNING), 0);
    MUST(rpma_conn_delete(&w.h.conn));
    assert_int_equal(logged_count(RPMA_LOG_LEVEL_WARNING), 0);
    world_drop(&w);
}

int main(void) {
    unsetenv("RPMA_FLUSH");
    const struct CMUnitTest tests[] = {
        TEST(wrong_guess_is_told),
        TEST(refused_flush_is_no_guess),
        TEST(statement_ends_the_guess),
        TEST(own_disconnection_is_no_failure),
    };
    return UNIT_RUN("flush_guess", tests);
}
