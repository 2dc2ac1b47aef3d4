// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// arguments.c -- every argument that is rejected by its value alone. The cases are generated
// from the conditions in contract/errors.tsv: "name == NULL", "name == 0" and "name > number"
// have their values in the condition, the table below has values for the others.

#include "arguments.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_CASES = 900, MAX_SETS = 4, MAX_CONDITION = 512 };

static const unsigned char desc_without_usage[21];
// A descriptor with address 1 and the largest size.
static const unsigned char desc_that_wraps[21] = {
    1, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0, 1};

static const struct rpma_conn_private_data null_with_length = {NULL, 255};
static const struct rpma_mr_local *const no_region[1] = {NULL};

// Arguments that make a term of a condition true; a term may have several rows.
static const struct violation {
    const char *term;     // the term, or its first characters
    const char *logs;     // NULL: the name of the first parameter
    const char *function; // NULL: any
    bool received;        // the value is received, so the line has level INFO
    bool full;            // the batch is full
    struct {
        const char *name;
        uintptr_t value;
    } set[MAX_SETS];
    uintptr_t others[4]; // other values of the first parameter with the same result
} violations[] = {
    // clang-format off
    {"flags == 0", "possible: RPMA_F_COMPLETION_ALWAYS, RPMA_F_COMPLETION_ON_ERROR",
     .set = {{"flags", 0}}},
    {"(usage & 0xff) == 0",
     "possible: RPMA_MR_USAGE_*, one or more of them, RPMA_MR_USAGE_ATOMIC together",
     .set = {{"usage", 0}}, {RPMA_MR_USAGE_ATOMIC}},
    {"(usage & ~0x1ff) != 0", .set = {{"usage", 0x200}}, {0x3ff, (uintptr_t)INT_MIN}},
    {"len > UINT32_MAX", "possible: 4294967295 (UINT32_MAX) at most",
     .set = {{"len", (uintptr_t)UINT32_MAX + 1}}, {SIZE_MAX}},
    {"dst_offset % 8 != 0", "possible: multiples of 8", .set = {{"dst_offset", 1}}, {4, 15}},
    {"timeout_ms < 0", .set = {{"timeout_ms", (uintptr_t)-1}}, {(uintptr_t)INT_MIN}},
    {"num_entries < 1", "possible: 1 and more",
     .set = {{"num_entries", 0}}, {(uintptr_t)INT_MIN}},
    {"(num_entries > 1 &&", .set = {{"num_entries", 2}, {"num_entries_got", 0}}, {INT_MAX}},
    {"type not in", "possible: RPMA_", .set = {{"type", 2}}, {(uintptr_t)-1}},
    {"mode not in", "possible: RPMA_FLUSH_MODE_*",
     .set = {{"mode", RPMA_FLUSH_MODE_NATIVE + 1}}, {(uintptr_t)-1}},
    {"threshold not in", "possible: RPMA_LOG_THRESHOLD, RPMA_LOG_THRESHOLD_AUX",
     .set = {{"threshold", RPMA_LOG_THRESHOLD_MAX}}, {(uintptr_t)-1}},
    {"level < RPMA_LOG_DISABLED", "level is -2; possible: RPMA_LOG_DISABLED, RPMA_LOG_LEVEL_*",
     .set = {{"level", (uintptr_t)-2}}},
    {"level > RPMA_LOG_LEVEL_DEBUG", "level is 6; possible: RPMA_LOG_DISABLED, RPMA_LOG_",
     .set = {{"level", RPMA_LOG_LEVEL_DEBUG + 1}}},
    {"desc_size < ", NULL, NULL, true, false, {{"desc_size", 0}}},
    {"desc_size < 21", NULL, "rpma_mr_remote_from_descriptor", true,
     .set = {{"desc_size", 20}}},
    {"the usage byte", "usage", NULL, true, false, {{"desc", (uintptr_t)desc_without_usage}}},
    {"the region (address", "ends beyond the last address: addr=0x1",
     "rpma_mr_remote_from_descriptor", true, .set = {{"desc", (uintptr_t)desc_that_wraps}}},
    {"pdata->ptr == NULL", "pdata->ptr == NULL", .set = {{"pdata", (uintptr_t)&null_with_length}}},
    {"dst_offset >= size", "the remote region has 64 bytes; possible: less than that",
     .set = {{"dst_offset", FIXTURE_REMOTE_SIZE}},
     {SIZE_MAX, SIZE_MAX - 6, SIZE_MAX - FIXTURE_REMOTE_SIZE, (uintptr_t)1 << 32}},
    {"dst == NULL && (src", "dst == NULL && src != NULL", .set = {{"dst", 0}}},
    {"dst == NULL && (src", "dst == NULL && src != NULL",
     .set = {{"dst", 0}, {"dst_offset", 0}, {"src_offset", 0}, {"len", 0}}},
    {"dst == NULL && (src", "dst",
     .set = {{"dst", 0}, {"src", 0}, {"dst_offset", 1}, {"len", 0}}},
    {"dst == NULL && (src", "dst",
     .set = {{"dst", 0}, {"src", 0}, {"src_offset", 1}, {"len", 0}}},
    {"dst == NULL && (src", "offsets 0 and 0, len 8; possible without memory: 0, 0 and 0",
     .set = {{"dst", 0}, {"src", 0}}},
    {"src == NULL && (dst", "src == NULL && dst != NULL", .set = {{"src", 0}}},
    {"src == NULL && (dst", "src == NULL && dst != NULL",
     .set = {{"src", 0}, {"dst_offset", 0}, {"src_offset", 0}, {"len", 0}}},
    {"dst == NULL && (offset", "dst is NULL", .set = {{"dst", 0}}},
    {"dst == NULL && (offset", "dst is NULL", .set = {{"dst", 0}, {"offset", 1}, {"len", 0}}},
    {"src == NULL && (offset", "offset 0, len 8; possible without memory: 0 and 0",
     .set = {{"src", 0}}},
    {"src == NULL && (offset", "src is NULL", .set = {{"src", 0}, {"offset", 1}, {"len", 0}}},
    {"backlog > INT32_MAX", "possible: 0 to 2147483647",
     .set = {{"backlog", (uintptr_t)INT32_MAX + 1}}, {UINT32_MAX}},
    {"addr is no numeric address",
     "addr is host; possible: a numeric IPv4 or IPv6 address, or NULL",
     .set = {{"addr", (uintptr_t) "host"}}},
    {"(work == NULL &&", .set = {{"work", 0}}},
    {"(receives == NULL &&", .set = {{"receives", 0}}},
    {"(receives == NULL &&", .set = {{"receives", 0}, {"count", UINT32_MAX}}},
    {"(mrs == NULL &&", .set = {{"mrs", 0}, {"nmrs", 1}}},
    {"mrs[i] == NULL", "mrs[i] == NULL", .set = {{"mrs", (uintptr_t)no_region}, {"nmrs", 1}}},
    {"(bytes == NULL &&", .set = {{"bytes", 0}}},
    {"(bytes == NULL &&", .set = {{"bytes", 0}, {"len", UINT32_MAX}}},
    {"(mrs != NULL &&", "nmrs == NULL", .set = {{"nmrs", 0}}},
    {"(bytes != NULL &&", "len == NULL", .set = {{"len", 0}}},
    // rdma_rxe makes a queue of 127 for a requested size of 100.
    {"limit > size", "limit is ", .set = {{"limit", 128}}, {UINT32_MAX}},
    {"index >= ", "the batch has 0 operations; possible: less than that",
     .set = {{"index", 0}}, {UINT32_MAX}},
    {"the batch is full",
     "max_ops is 1; empty it with rpma_batch_reset(), or create one", NULL, false, true},
    // clang-format on
};

// steps_refused.c tests them, because they delete the request.
static const char *const left_out[] = {"rpma_conn_req_connect", "rpma_conn_req_reject"};

static struct bad {
    const struct contract_row *row;
    char term[MAX_CONDITION];
    struct violation violation;
    char name[32]; // storage for violation.set[0].name of a term without a row
    char logs[64]; // storage for violation.logs of such a term
} bad[MAX_CASES];
static struct CMUnitTest cases[MAX_CASES];
static char names[MAX_CASES][64 + MAX_CONDITION];
static size_t count;

static void is_refused(void **state) {
    static struct arguments a;
    const struct bad *b = *state;
    const struct shape shape = {.name = "of arguments"};
    fixture_conn(&w, &shape);
    fixture_listen(&w);
    STEP(&w, rpma_srq_cfg_new(&w.h.srq_cfg));
    STEP(&w, rpma_srq_new(w.h.peer, NULL, &w.h.srq));
    STEP(&w, rpma_conn_req_new(w.h.peer, FIXTURE_ADDRESS, FIXTURE_PORT, NULL, &w.h.req));
    STEP(&w, rpma_cq_cfg_new(&w.h.cq_cfg));
    STEP(&w, rpma_ep_cfg_new(&w.h.ep_cfg));
    STEP(&w, rpma_batch_new(w.h.conn, 1, &w.h.batch));
    if (b->violation.full)
        STEP(&w, rpma_batch_add(w.h.batch,
                                &(const struct rpma_work){.type = RPMA_WORK_SEND, .flags = 1}));

    arguments_good(&a, b->row->function, &w);
    for (int i = 0; i < MAX_SETS && b->violation.set[i].name; i++)
        if (!arguments_set(&a, b->violation.set[i].name, b->violation.set[i].value))
            fail_msg("%s has no parameter %s", b->row->function, b->violation.set[i].name);
    arguments_watch(&a);
    unit_begin();
    const int ret = arguments_call(&a);
    const struct expected_error expected = {
        .code = RPMA_E_INVAL,
        .condition = b->row->condition,
        .cause = b->term,
        .logs = b->violation.logs ? b->violation.logs : b->violation.set[0].name,
        .level = b->violation.received ? RPMA_LOG_LEVEL_INFO : 0,
    };
    unit_expect_error(ret, b->row->function, &expected, __FILE__, __LINE__);
    STEP(&w, rpma_batch_post(w.h.batch, NULL)); // the batch is unchanged
    assert_int_equal(fake_posted_count(), b->violation.full);
    fixture_delete(&w);
}

static void add_case(const struct contract_row *row, const char *term,
                     const struct violation *violation) {
    struct bad *b = &bad[count];
    if (count == MAX_CASES) {
        fprintf(stderr, "arguments: more than %d cases: raise MAX_CASES\n", MAX_CASES);
        exit(1);
    }
    b->row = row;
    snprintf(b->term, sizeof(b->term), "%s", term);
    snprintf(names[count], sizeof(names[count]), "%s: %s", row->function, term);
    b->violation = *violation;
    if (!violation->set[0].name && !violation->full) { // the term names the argument
        snprintf(b->name, sizeof(b->name), "%.*s", (int)strcspn(term, " "), term);
        b->violation.set[0].name = b->name;
    }
    if (!violation->logs && b->violation.set[0].name == b->name) {
        const bool is_pointer = strcmp(term + strlen(b->name), " == NULL") == 0;
        snprintf(b->logs, sizeof(b->logs),
                 is_pointer ? "%s" : "%s is %u; possible: ", is_pointer ? b->term : b->name,
                 (unsigned)violation->set[0].value);
        b->violation.logs = b->logs;
    }
    cases[count] = (struct CMUnitTest){names[count], is_refused, unit_setup, unit_teardown, b};
    count++;
}

static void add_violation(const struct contract_row *row, const char *term,
                          struct violation violation) {
    add_case(row, term, &violation);
    for (size_t i = 0; i < LENGTH(violation.others) && violation.others[i]; i++) {
        violation.set[0].value = violation.others[i];
        add_case(row, term, &violation);
    }
}

// A term that contains its value: "name == NULL", "name == 0" or "name > number". Returns false
// for all others.
static bool add_plain_term(const struct contract_row *row, const char *term) {
    const size_t name = strspn(term, "abcdefghijklmnopqrstuvwxyz_0123456789");
    const char *rest = term + name;
    char *end = NULL;
    struct violation violation = {.term = term};
    if (name == 0)
        return false;
    if (strncmp(rest, " > ", 3) == 0 && isdigit((unsigned char)rest[3])) {
        violation.set[0].value = strtoul(rest + 3, &end, 10) + 1;
        violation.others[0] = INT_MAX; // also of an unsigned number
    } else if (strcmp(rest, " == NULL") != 0 && strcmp(rest, " == 0") != 0) {
        return false;
    }
    if (!end || !*end)
        add_violation(row, term, violation);
    return !end || !*end;
}

static void add_term(const struct contract_row *row, const char *term) {
    bool found = false;
    for (size_t i = 0; i < LENGTH(violations); i++)
        if ((!violations[i].function || strcmp(violations[i].function, row->function) == 0) &&
            strncmp(violations[i].term, term, strlen(violations[i].term)) == 0) {
            add_violation(row, term, violations[i]);
            found = true;
        }
    if (!found)
        add_plain_term(row, term);
}

// Splits at "||" outside of brackets; the text after a semicolon is a remark.
static void add_row(const struct contract_row *row) {
    char text[MAX_CONDITION], *start = text;
    int depth = 0;
    snprintf(text, sizeof(text), "%.*s", (int)strcspn(row->condition, ";"), row->condition);
    for (char *at = text;; at++) {
        depth += (*at == '(') - (*at == ')');
        const bool split = depth == 0 && strncmp(at, " || ", 4) == 0;
        if (*at && !split)
            continue;
        const bool last = !*at;
        *at = '\0';
        add_term(row, start);
        if (last)
            return;
        start = at + 4;
        at += 3;
    }
}

int main(void) {
    size_t rows;
    const struct contract_row *row = contract_rows(&rows);
    for (; rows > 0; rows--, row++) {
        bool skip = row->code != RPMA_E_INVAL || strcmp(row->decision, "never") == 0;
        for (size_t i = 0; i < LENGTH(left_out); i++)
            skip |= strcmp(row->function, left_out[i]) == 0;
        if (!skip)
            add_row(row);
    }
    return unit_run("arguments", cases, count);
}
