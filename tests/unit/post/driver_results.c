// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// driver_results.c -- the results of the library if a post returns what sim/tests/drivers has
// recorded of each driver with a full queue

#include "lists.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

enum { LONGEST = 3 }; // requests of a list

static const struct question {
    const char *text;
    const char *function; // "rpma_post", or the function that posts receives
    const char *single;   // a function of a release before 1.4 for one request
    const char *request;  // fake_fail() of a request after the first one of a list
    uint32_t count;
} questions[] = {
    {"send: full queue", "rpma_post", "rpma_send", NULL, 1},
    {"send: full queue, list", "rpma_post", NULL, NULL, LONGEST},
    {"send: list of 3, 1 free entry", "rpma_post", NULL, "refuse ibv_post_send", LONGEST},
    {"receive: full queue", "rpma_recv_many", "rpma_recv", NULL, 1},
    {"receive: full queue", "rpma_conn_req_recv_many", "rpma_conn_req_recv", NULL, 1},
    {"receive: list of 3, 1 free entry", "rpma_recv_many", NULL, "refuse ibv_post_recv",
     LONGEST},
    {"SRQ: full", "rpma_srq_recv_many", "rpma_srq_recv", NULL, 1},
    {"SRQ: full", "rpma_srq_recv_many", NULL, "refuse ibv_post_recv", LONGEST},
};

static int post_list(const char *function, uint32_t count, uint32_t *posted) {
    const struct rpma_sge sge = list_sge(0);
    struct rpma_receive receives[LONGEST];
    struct rpma_work work[LONGEST];
    for (uint32_t i = 0; i < LONGEST; i++) {
        receives[i] = (struct rpma_receive){.local = sge};
        work[i] = (struct rpma_work){.type = RPMA_WORK_SEND, .local = sge, .flags = 1};
    }
    if (strcmp(function, "rpma_recv_many") == 0)
        return rpma_recv_many(w.h.conn, receives, count, posted);
    if (strcmp(function, "rpma_conn_req_recv_many") == 0)
        return rpma_conn_req_recv_many(w.h.req, receives, count, posted);
    if (strcmp(function, "rpma_srq_recv_many") == 0)
        return rpma_srq_recv_many(w.h.srq, receives, count, posted);
    return rpma_post(w.h.conn, work, count, posted);
}

static int post_single(const char *function) {
    if (strcmp(function, "rpma_recv") == 0)
        return rpma_recv(w.h.conn, w.h.mr, 0, 8, NULL);
    if (strcmp(function, "rpma_conn_req_recv") == 0)
        return rpma_conn_req_recv(w.h.req, w.h.mr, 0, 8, NULL);
    if (strcmp(function, "rpma_srq_recv") == 0)
        return rpma_srq_recv(w.h.srq, w.h.mr, 0, 8, NULL);
    return rpma_send(w.h.conn, w.h.mr, 0, 8, 1, NULL);
}

// "ENOMEM" or "-ENOMEM"
static int number_of(const char *name) {
    const bool is_negative = *name == '-';
    for (int error = 1; error < 134; error++)
        if (strcmp(strerrorname_np(error), name + is_negative) == 0)
            return is_negative ? -error : error;
    fail_msg("no error is called %s", name);
    return 0;
}

// request: the number of the first rejected request, from 1.
static void check_result(const char *where, const struct question *q, int returned,
                         uint32_t request) {
    const bool is_srq = strncmp(q->text, "SRQ", 3) == 0;
    const bool is_send = strncmp(q->text, "send", 4) == 0;
    const char *const call = is_send  ? "ibv_post_send"
                             : is_srq ? "ibv_post_srq_recv"
                                      : "ibv_post_recv";
    const char *const condition = is_send  ? "the send queue is full"
                                  : is_srq ? "the shared receive queue is full"
                                           : "the receive queue is full";
    char cause[32], failed[64];
    uint32_t posted = 77;
    snprintf(cause, sizeof(cause), "%s()", call);
    snprintf(failed, sizeof(failed), "%s failed", cause);
    print_message("%s: %s: %s\n", where, q->text, q->function);
    fake_reset();
    list_fixture_new(is_srq, 1);
    fake_fail(request > 1 ? q->request : call, 1, returned);
    EXPECT_ERROR_OF(q->function, post_list(q->function, q->count, &posted), RPMA_E_AGAIN,
                    condition, condition, .any_calls = true,
                    .logs = " queue is full, it holds ");
    assert_int_equal(posted, request - 1);
    fake_faults_off();
    if (q->single) {
        fake_fail(call, 1, returned);
        EXPECT_ERROR_OF(q->single, post_single(q->single), RPMA_E_PROVIDER, failed, cause,
                        returned == -1 ? 0 : abs(returned), call,
                        .logs = " queue is full, it holds ");
        fake_faults_off();
    }
    list_fixture_delete();
}

enum { WITHOUT_SRQ = 6, WITH_SRQ = 8 };

// Returns the number of results that were checked.
static unsigned check_driver(const char *path) {
    char line[256], name[32];
    unsigned checked = 0;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file)) {
        const size_t length = strcspn(line, "\t");
        if (strncmp(line, "RC QP\t", length + 1) == 0)
            checked = WITHOUT_SRQ; // libmana 44 has no such queue
        for (size_t i = 0; i < LENGTH(questions); i++) {
            uint32_t request;
            if (strlen(questions[i].text) != length ||
                strncmp(questions[i].text, line, length) != 0)
                continue;
            if (sscanf(line + length, " %31[^,], bad_wr request %u", name, &request) != 2)
                fail_msg("%s: a full queue returns%s", path, line + length);
            // libmana 56 has no other number for a queue without completions.
            if (number_of(name) != EINVAL)
                check_result(path, &questions[i], number_of(name), request);
            checked++;
        }
    }
    assert_int_equal(fclose(file), 0);
    return checked;
}

TEST_THAT(full_queue_of_each_driver_is_reported_as_such) {
    glob_t found;
    unsigned drivers_with_srq = 0;
    assert_int_equal(glob(RECORDED_DRIVERS "/*/*.tsv", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const unsigned checked = check_driver(found.gl_pathv[i]);
        drivers_with_srq += checked == WITH_SRQ;
        if (checked != WITHOUT_SRQ && checked != WITH_SRQ)
            fail_msg("%s has %u results of full queues", found.gl_pathv[i], checked);
    }
    assert_true(drivers_with_srq > 0 && drivers_with_srq < found.gl_pathc);
    globfree(&found);
}
