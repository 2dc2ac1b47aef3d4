// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// utils.c -- on-demand paging, texts, the version

#include "unit.h"

#include "error_codes.h"

#include <limits.h>
#include <stdio.h>

TEST_THAT(odp_is_reported_with_reads_and_writes_of_connections_only) {
    enum { READ = IBV_ODP_SUPPORT_READ, WRITE = IBV_ODP_SUPPORT_WRITE };
    static const struct {
        uint64_t general, rc;
        int capable;
    } cases[] = {
        {IBV_ODP_SUPPORT, READ | WRITE, 1},
        {IBV_ODP_SUPPORT, READ | WRITE | IBV_ODP_SUPPORT_SEND, 1},
        {IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT, READ | WRITE, 1},
        {IBV_ODP_SUPPORT, READ, 0},
        {IBV_ODP_SUPPORT, WRITE, 0},
        {IBV_ODP_SUPPORT, 0, 0},
        {IBV_ODP_SUPPORT_IMPLICIT, READ | WRITE, 0},
        {0, 0, 0},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        int capable = -1;
        fake_device()->odp_general = cases[i].general;
        fake_device()->odp_rc = cases[i].rc;
        MUST(rpma_utils_ibv_context_is_odp_capable(fake_context(0), &capable));
        EXPECT_CALLS("ibv_query_device_ex");
        assert_int_equal(capable, cases[i].capable);
    }
}

// rdma-core 56, libibverbs/verbs.h, ibv_query_device_ex(): calls ibv_query_device() for a
// device without the extended query.
TEST_THAT(device_without_the_extended_query_is_not_odp_capable) {
    int capable = -1;
    fake_fail("ibv_query_device_ex", 1, EOPNOTSUPP);
    MUST(rpma_utils_ibv_context_is_odp_capable(fake_context(0), &capable));
    EXPECT_CALLS("ibv_query_device_ex ibv_query_device");
    assert_int_equal(capable, 0);
}

// ---- texts ---------------------------------------------------------------------------------

TEST_THAT(codes_have_messages) {
    static const struct {
        int code;
        const char *text;
    } cases[] = {
        {0, "Success"},
        {RPMA_E_UNKNOWN, "Unknown error"},
        {RPMA_E_NOSUPP, "Not supported"},
        {RPMA_E_PROVIDER, "Provider error occurred"},
        {RPMA_E_NOMEM, "Out of memory"},
        {RPMA_E_INVAL, "Invalid argument"},
        {RPMA_E_NO_COMPLETION, "No next completion available"},
        {RPMA_E_NO_EVENT, "No next event available"},
        {RPMA_E_AGAIN, "Temporary error, try again"},
        {RPMA_E_SHARED_CHANNEL, "Completion channel is shared"},
        {RPMA_E_NOT_SHARED_CHNL, "Completion channel is not shared"},
        {1, "Unknown error"},
        {-1, "Unknown error"},
        {INT_MIN, "Unknown error"},
    };
    for (size_t i = 0; i < LENGTH(cases); i++)
        assert_string_equal(rpma_err_2str(cases[i].code), cases[i].text);
}

TEST_THAT(each_code_has_its_own_message) {
    static const int codes[] = {
#define CODE(code, text, is_failure) code,
        RPMA_ERROR_CODES(CODE)};
    int lowest = 0;
    for (size_t i = 0; i < LENGTH(codes); i++) {
        lowest = codes[i] < lowest ? codes[i] : lowest;
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(rpma_err_2str(codes[i]), rpma_err_2str(codes[j]));
    }
    assert_string_equal(rpma_err_2str(lowest - 1), "Unknown error");
}

TEST_THAT(events_have_texts) {
    static const struct {
        int event;
        const char *text;
    } cases[] = {
        {RPMA_CONN_UNDEFINED, "Undefined connection event"},
        {RPMA_CONN_ESTABLISHED, "Connection established"},
        {RPMA_CONN_CLOSED, "Connection closed"},
        {RPMA_CONN_LOST, "Connection lost"},
        {RPMA_CONN_REJECTED, "Connection rejected"},
        {RPMA_CONN_UNREACHABLE, "Connection unreachable"},
        {RPMA_CONN_UNREACHABLE + 1, "Unsupported connection event"},
        {RPMA_CONN_UNDEFINED - 1, "Unsupported connection event"},
    };
    for (size_t i = 0; i < LENGTH(cases); i++)
        assert_string_equal(rpma_utils_conn_event_2str((enum rpma_conn_event)cases[i].event),
                            cases[i].text);
}

// The header, the project and the library have the same version.
TEST_THAT(version_equals_the_project_version) {
    char text[32];
    const uint32_t version = rpma_version();
    snprintf(text, sizeof(text), "%u.%u.%u", version >> 16, version >> 8 & 0xff,
             version & 0xff);
    assert_string_equal(text, PROJECT_VERSION);
    assert_int_equal(version, RPMA_VERSION);
    assert_true(RPMA_VERSION_NUMBER(1, 3, 255) < RPMA_VERSION_NUMBER(1, 4, 0));
}
