// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// arguments.c -- every argument that is refused by its value alone. The cases are generated
// from the conditions in contract/errors.tsv; the table below says how to make those that are
// not "name == NULL".

#include "arguments.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_CASES = 900, MAX_SETS = 4 };

static const unsigned char desc_without_usage[21];
// A descriptor with address 1 and the largest size.
static const unsigned char desc_that_wraps[21] = {
    1, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0, 1};

static const struct rpma_conn_private_data nowhere = {NULL, 255};
static const struct rpma_mr_local *const no_region[1] = {NULL};

// A way to make a term of a condition true; several rows may stand for one term.
static const struct way {
    const char *function; // NULL: any
    const char *term;     // of the condition, or its beginning
    struct {
        const char *name;
        uintptr_t value;
    } set[MAX_SETS];
    const char *logs; // NULL: the name of the first parameter
    bool full;        // the batch has no room
    bool received;    // the value came from another machine, so the line has level INFO
} ways[] = {
    {NULL, "flags == 0", {{"flags", 0}}, NULL},
    {NULL, "size == 0", {{"size", 0}}, NULL},
    {NULL, "usage == 0", {{"usage", 0}}, NULL},
    {NULL, "(usage & ~0xff) != 0", {{"usage", 0x100}}, NULL},
    {NULL, "(usage & ~0xff) != 0", {{"usage", 0x1ff}}, NULL},
    {NULL, "(usage & ~0xff) != 0", {{"usage", (uintptr_t)INT_MIN}}, NULL},
    {NULL, "len > UINT32_MAX", {{"len", (uintptr_t)UINT32_MAX + 1}}, NULL},
    {NULL, "len > UINT32_MAX", {{"len", SIZE_MAX}}, NULL},
    {NULL, "dst_offset % 8 != 0", {{"dst_offset", 1}}, NULL},
    {NULL, "dst_offset % 8 != 0", {{"dst_offset", 4}}, NULL},
    {NULL, "dst_offset % 8 != 0", {{"dst_offset", 15}}, NULL},
    {NULL, "timeout_ms < 0", {{"timeout_ms", (uintptr_t)-1}}, NULL},
    {NULL, "timeout_ms < 0", {{"timeout_ms", (uintptr_t)INT_MIN}}, NULL},
    {NULL, "num_entries < 1", {{"num_entries", 0}}, NULL},
    {NULL, "num_entries < 1", {{"num_entries", (uintptr_t)INT_MIN}}, NULL},
    {NULL, "(num_entries > 1 &&", {{"num_entries", 2}, {"num_entries_got", 0}}, NULL},
    {NULL, "(num_entries > 1 &&", {{"num_entries", INT_MAX}, {"num_entries_got", 0}}, NULL},
    {NULL, "type not in", {{"type", 2}}, NULL},
    {NULL, "type not in", {{"type", (uintptr_t)-1}}, NULL},
    {NULL, "mode not in", {{"mode", RPMA_FLUSH_MODE_NATIVE + 1}}, NULL},
    {NULL, "mode not in", {{"mode", (uintptr_t)-1}}, NULL},
    {NULL, "threshold not in", {{"threshold", RPMA_LOG_THRESHOLD_MAX}}, NULL},
    {NULL, "threshold not in", {{"threshold", (uintptr_t)-1}}, NULL},
    {NULL, "level < RPMA_LOG_DISABLED", {{"level", (uintptr_t)-2}}, NULL},
    {NULL, "level > RPMA_LOG_LEVEL_DEBUG", {{"level", RPMA_LOG_LEVEL_DEBUG + 1}}, NULL},
    {NULL, "desc_size < ", {{"desc_size", 0}}, NULL, .received = true},
    {"rpma_mr_remote_from_descriptor",
     "desc_size < 21",
     {{"desc_size", 20}},
     NULL,
     .received = true},
    {NULL,
     "the usage byte",
     {{"desc", (uintptr_t)desc_without_usage}},
     "usage",
     .received = true},
    {"rpma_mr_remote_from_descriptor",
     "the region (address",
     {{"desc", (uintptr_t)desc_that_wraps}},
     "ends behind the last address: addr=0x1",
     .received = true},
    {NULL, "pdata->ptr == NULL", {{"pdata", (uintptr_t)&nowhere}}, "pdata->ptr == NULL"},
    {NULL, "dst_offset >= size", {{"dst_offset", WORLD_REMOTE_SIZE}}, NULL},
    {NULL, "dst_offset >= size", {{"dst_offset", SIZE_MAX}}, NULL},
    {NULL, "dst == NULL && (src", {{"dst", 0}}, "dst == NULL && src != NULL"},
    {NULL,
     "dst == NULL && (src",
     {{"dst", 0}, {"dst_offset", 0}, {"src_offset", 0}, {"len", 0}},
     "dst == NULL && src != NULL"},
    {NULL,
     "dst == NULL && (src",
     {{"dst", 0}, {"src", 0}, {"dst_offset", 1}, {"len", 0}},
     "dst"},
    {NULL,
     "dst == NULL && (src",
     {{"dst", 0}, {"src", 0}, {"src_offset", 1}, {"len", 0}},
     "dst"},
    {NULL,
     "dst == NULL && (src",
     {{"dst", 0}, {"src", 0}},
     "dst and src are NULL, offsets 0 and 0"},
    {NULL, "src == NULL && (dst", {{"src", 0}}, "src == NULL && dst != NULL"},
    {NULL,
     "src == NULL && (dst",
     {{"src", 0}, {"dst_offset", 0}, {"src_offset", 0}, {"len", 0}},
     "src == NULL && dst != NULL"},
    {NULL,
     "src == NULL && (dst",
     {{"dst", 0}, {"src", 0}, {"dst_offset", 1}, {"len", 0}},
     "src"},
    {NULL,
     "src == NULL && (dst",
     {{"dst", 0}, {"src", 0}, {"src_offset", 1}, {"len", 0}},
     "src"},
    {NULL,
     "src == NULL && (dst",
     {{"dst", 0}, {"src", 0}},
     "dst and src are NULL, offsets 0 and 0"},
    {NULL, "dst == NULL && (offset", {{"dst", 0}}, "dst is NULL"},
    {NULL, "dst == NULL && (offset", {{"dst", 0}, {"offset", 1}, {"len", 0}}, "dst is NULL"},
    {NULL, "src == NULL && (offset", {{"src", 0}}, "src is NULL"},
    {NULL, "src == NULL && (offset", {{"src", 0}, {"offset", 1}, {"len", 0}}, "src is NULL"},
    {NULL, "max_ops == 0", {{"max_ops", 0}}, NULL},
    {NULL, "retry_count > 7", {{"retry_count", 8}}, NULL},
    {NULL, "retry_count > 7", {{"retry_count", UINT32_MAX}}, NULL},
    {NULL, "rnr_retry_count > 7", {{"rnr_retry_count", 8}}, NULL},
    {NULL, "rnr_retry_count > 7", {{"rnr_retry_count", UINT32_MAX}}, NULL},
    {NULL, "timeout_ms > 8796093", {{"timeout_ms", 8796094}}, NULL},
    {NULL, "timeout_ms > 8796093", {{"timeout_ms", INT_MAX}}, NULL},
    {NULL, "max_sge == 0", {{"max_sge", 0}}, NULL},
    {NULL, "(work == NULL &&", {{"work", 0}}, NULL},
    {NULL, "(receives == NULL &&", {{"receives", 0}}, NULL},
    {NULL, "(receives == NULL &&", {{"receives", 0}, {"count", UINT32_MAX}}, NULL},
    {NULL, "(mrs == NULL &&", {{"mrs", 0}, {"nmrs", 1}}, NULL},
    {NULL, "mrs[i] == NULL", {{"mrs", (uintptr_t)no_region}, {"nmrs", 1}}, "mrs[i] == NULL"},
    {NULL, "(bytes == NULL &&", {{"bytes", 0}}, NULL},
    {NULL, "(bytes == NULL &&", {{"bytes", 0}, {"len", UINT32_MAX}}, NULL},
    {NULL, "(mrs != NULL &&", {{"nmrs", 0}}, "nmrs == NULL"},
    {NULL, "(bytes != NULL &&", {{"len", 0}}, "len == NULL"},
    {NULL, "index >= ", {{"index", 0}}, NULL},
    {NULL, "index >= ", {{"index", UINT32_MAX}}, NULL},
    {NULL, "the batch is full", {{0}}, "the batch is full: max_ops is 1", true},
};

// A bad argument makes it delete the request: connect.c tests it.
static const char *const left_out[] = {"rpma_conn_req_connect"};

static struct bad {
    const struct contract_row *row;
    char term[128];
    struct way way;
    char null_name[32]; // storage behind way.set[0].name of a NULL term
} bad[MAX_CASES];
static struct CMUnitTest cases[MAX_CASES];
static char names[MAX_CASES][192];
static size_t count;

static void is_refused(void **state) {
    static struct world w;
    static struct arguments a;
    const struct bad *b = *state;
    const struct shape shape = {.name = "of arguments"};
    world_conn(&w, &shape);
    world_listen(&w);
    STEP(&w, rpma_srq_cfg_new(&w.h.srq_cfg));
    STEP(&w, rpma_srq_new(w.h.peer, NULL, &w.h.srq));
    STEP(&w, rpma_conn_req_new(w.h.peer, WORLD_ADDRESS, WORLD_PORT, NULL, &w.h.req));
    STEP(&w, rpma_cq_cfg_new(&w.h.cq_cfg));
    STEP(&w, rpma_batch_new(w.h.conn, 1, &w.h.batch));
    if (b->way.full)
        STEP(&w, rpma_batch_add(w.h.batch,
                                &(const struct rpma_work){.type = RPMA_WORK_SEND, .flags = 1}));

    arguments_good(&a, b->row->function, &w);
    for (int i = 0; i < MAX_SETS && b->way.set[i].name; i++)
        if (!arguments_set(&a, b->way.set[i].name, b->way.set[i].value))
            fail_msg("%s has no parameter %s", b->row->function, b->way.set[i].name);
    arguments_watch(&a);
    unit_begin();
    const int ret = arguments_call(&a);
    const struct expected_error expected = {
        .code = RPMA_E_INVAL,
        .condition = b->row->condition,
        .cause = b->term,
        .logs = b->way.logs ? b->way.logs : b->way.set[0].name,
        .level = b->way.received ? RPMA_LOG_LEVEL_INFO : 0,
    };
    unit_expect_error(ret, b->row->function, &expected, __FILE__, __LINE__);
    STEP(&w, rpma_batch_post(w.h.batch, NULL)); // the batch is unchanged
    assert_int_equal(fake_posted_count(), b->way.full);
    world_drop(&w);
}

static void add_case(const struct contract_row *row, const char *term, const struct way *way) {
    struct bad *b = &bad[count];
    if (count == MAX_CASES) {
        fprintf(stderr, "arguments: more than %d cases: raise MAX_CASES\n", MAX_CASES);
        exit(1);
    }
    b->row = row;
    snprintf(b->term, sizeof(b->term), "%s", term);
    snprintf(names[count], sizeof(names[count]), "%s: %s", row->function, term);
    if (way) {
        b->way = *way;
    } else { // "name == NULL"
        snprintf(b->null_name, sizeof(b->null_name), "%.*s", (int)strcspn(term, " "), term);
        b->way.set[0].name = b->null_name;
        b->way.logs = b->term;
    }
    cases[count] = (struct CMUnitTest){names[count], is_refused, unit_setup, unit_teardown, b};
    count++;
}

static void add_term(const struct contract_row *row, const char *term) {
    const size_t name = strspn(term, "abcdefghijklmnopqrstuvwxyz_");
    if (name > 0 && strcmp(term + name, " == NULL") == 0) {
        add_case(row, term, NULL);
        return;
    }
    for (size_t i = 0; i < LENGTH(ways); i++)
        if ((!ways[i].function || strcmp(ways[i].function, row->function) == 0) &&
            strncmp(ways[i].term, term, strlen(ways[i].term)) == 0)
            add_case(row, term, &ways[i]);
}

// Splits at "||" outside of brackets; the text after a semicolon is a remark.
static void add_row(const struct contract_row *row) {
    char text[512], *start = text;
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
