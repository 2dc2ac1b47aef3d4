// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// completions.c -- the exact bytes that the two old functions write for each kind of
// completion.
//
// Compiled for each release that had them, with its structure of 24 or 32 bytes, and for today.
// The structure lies in the middle of bytes that nobody may touch.

#include <stddef.h>
#include <string.h>

#include "fake.h"
#include "life.h"

enum { UNTOUCHED = 0xa5, OP_IMM = 5, WC_FLUSH = 8, WC_ATOMIC_WRITE = 9 };
enum { CONTEXT = 1, OP = 2, LEN = 4, STATUS = 8, FLAGS = 16, IMM = 32 };
enum { NOTHING = 0, FAILED = CONTEXT | STATUS, OLD = CONTEXT | OP | LEN | STATUS };
enum { NEW = OLD | FLAGS, RECEIVED = NEW | IMM };

struct want {
    int ret, op;
    unsigned written;
};

struct completed {
    int opcode;
    enum ibv_wc_status status;
    unsigned flags;
    struct want old, new; // with 24 and with 32 bytes
};

#define OK IBV_WC_SUCCESS
#define BAD IBV_WC_REM_ACCESS_ERR
#define NO \
    { RPMA_E_NOSUPP, 0, NOTHING }
#define NO_BUT \
    { RPMA_E_NOSUPP, 0, FAILED }

static const struct completed cases[] = {
    {IBV_WC_SEND, OK, 0, {0, RPMA_OP_SEND, OLD}, {0, RPMA_OP_SEND, NEW}},
    {IBV_WC_RDMA_WRITE, OK, 0, {0, RPMA_OP_WRITE, OLD}, {0, RPMA_OP_WRITE, NEW}},
    {IBV_WC_RDMA_READ, OK, 0, {0, RPMA_OP_READ, OLD}, {0, RPMA_OP_READ, NEW}},
    {IBV_WC_RECV, OK, 0, {0, RPMA_OP_RECV, OLD}, {0, RPMA_OP_RECV, NEW}},
    {IBV_WC_RECV, OK, IBV_WC_WITH_IMM, {0, RPMA_OP_RECV, OLD}, {0, RPMA_OP_RECV, RECEIVED}},
    {IBV_WC_RECV, OK, IBV_WC_GRH, {0, RPMA_OP_RECV, OLD}, {0, RPMA_OP_RECV, NEW}},
    {IBV_WC_SEND, OK, IBV_WC_WITH_IMM, {0, RPMA_OP_SEND, OLD}, {0, RPMA_OP_SEND, NEW}},
    {IBV_WC_RECV_RDMA_WITH_IMM, OK, IBV_WC_WITH_IMM, NO, {0, OP_IMM, RECEIVED}},
    {WC_FLUSH, OK, 0, {0, RPMA_OP_FLUSH, OLD}, {0, RPMA_OP_FLUSH, NEW}},
    {WC_ATOMIC_WRITE, OK, 0, {0, RPMA_OP_WRITE, OLD}, {0, RPMA_OP_WRITE, NEW}},
    {IBV_WC_COMP_SWAP, OK, 0, NO, NO_BUT},
    {IBV_WC_FETCH_ADD, OK, 0, NO, NO_BUT},
    {IBV_WC_BIND_MW, OK, 0, NO, NO_BUT},
    {IBV_WC_LOCAL_INV, OK, 0, NO, NO_BUT},
    {IBV_WC_TSO, OK, 0, NO, NO_BUT},
    {IBV_WC_RDMA_WRITE, BAD, 0, {0, RPMA_OP_WRITE, OLD}, {0, 0, FAILED}},
    {IBV_WC_RECV, BAD, IBV_WC_WITH_IMM, {0, RPMA_OP_RECV, OLD}, {0, 0, FAILED}},
    {IBV_WC_RECV_RDMA_WITH_IMM, BAD, 0, NO, {0, 0, FAILED}},
    {IBV_WC_FETCH_ADD, BAD, 0, NO, {0, 0, FAILED}},
};

typedef int get(struct rpma_conn *conn, struct rpma_completion *cmpl);

static unsigned warnings;

static void count_warnings(enum rpma_log_level level, const char *file_name, const int line_no,
                           const char *function_name, const char *message_format, ...) {
    (void)file_name, (void)line_no, (void)function_name, (void)message_format;
    warnings += level == RPMA_LOG_LEVEL_WARNING;
}

struct guarded {
    unsigned char before[64];
    unsigned char cmpl[96];
};

static void put(struct guarded *image, bool written, size_t offset, const void *value,
                size_t size) {
    if (written)
        memcpy(image->cmpl + offset, value, size);
}

static struct guarded expected(const struct ibv_wc *wc, const struct want *want) {
    const void *context = (void *)(uintptr_t)wc->wr_id;
    const uint32_t imm = 0x01020304;
    struct guarded image;
    memset(&image, UNTOUCHED, sizeof(image));
    put(&image, want->written & CONTEXT, 0, &context, 8);
    put(&image, want->written & OP, 8, &want->op, 4);
    put(&image, want->written & LEN, 12, &wc->byte_len, 4);
    put(&image, want->written & STATUS, 16, &wc->status, 4);
    put(&image, want->written & FLAGS, 20, &wc->wc_flags, 4);
    put(&image, want->written & IMM, 24, &imm, 4);
    return image;
}

static void check_case(struct rpma_conn *conn, get *get, const struct completed *completed) {
    const bool small = sizeof(struct rpma_completion) == 24;
    const struct want *want = small ? &completed->old : &completed->new;
    static const unsigned char imm[4] = {1, 2, 3, 4}; // as on the wire
    struct ibv_wc wc = {
        .wr_id = (uintptr_t)completed,
        .opcode = (enum ibv_wc_opcode)completed->opcode,
        .status = completed->status,
        .wc_flags = completed->flags,
        .byte_len = 77,
    };
    memcpy(&wc.imm_data, imm, sizeof(imm));
    struct guarded image, right = expected(&wc, want);
    memset(&image, UNTOUCHED, sizeof(image));
    const struct rdma_cm_id *id = fake_nth("rdma_create_qp_ex", 1)->object;
    fake_complete(id->qp->send_cq, &wc);
    warnings = 0;
    const int ret = get(conn, (struct rpma_completion *)(void *)image.cmpl);
    if (ret == want->ret && memcmp(&image, &right, sizeof(image)) == 0 &&
        warnings == (completed->status != OK))
        return;
    fprintf(stderr, "opcode %d, status %d, flags %u: %s, %u warnings\n", completed->opcode,
            completed->status, completed->flags, rpma_err_2str(ret), warnings);
    for (size_t i = 0; i < sizeof(image); i++)
        if (((unsigned char *)&image)[i] != ((unsigned char *)&right)[i])
            fprintf(stderr, "byte %zd differs\n",
                    (ptrdiff_t)i - (ptrdiff_t)sizeof(image.before));
    CHECK(!"written as this release did");
}

static void check_refusal(struct rpma_conn *conn, get *get, int polled, int ret) {
    struct guarded image, right;
    memset(&image, UNTOUCHED, sizeof(image));
    memset(&right, UNTOUCHED, sizeof(right));
    fake_poll_returns(polled);
    CHECK(get(conn, (struct rpma_completion *)(void *)image.cmpl) == ret);
    CHECK(memcmp(&image, &right, sizeof(image)) == 0);
    CHECK(get(conn, NULL) == RPMA_E_INVAL);
}

static void check(struct rpma_conn *conn, get *get) {
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        check_case(conn, get, &cases[i]);
    check_refusal(conn, get, 0, RPMA_E_NO_COMPLETION);
    check_refusal(conn, get, -1, RPMA_E_PROVIDER);
    check_refusal(conn, get, 2, RPMA_E_UNKNOWN);
}

#ifdef HAVE_CQ_GET_COMPLETION
static int get_from_cq(struct rpma_conn *conn, struct rpma_completion *cmpl) {
    struct rpma_cq *cq = NULL;
    MUST(rpma_conn_get_cq(conn, &cq));
    return rpma_cq_get_completion(cq, cmpl);
}
#endif

int main(int argc, char *argv[]) {
    struct life life;
    MUST(rpma_log_set_function(count_warnings));
    life_open(&life, argc, argv);
    life_connect(&life, NULL, NULL);
#ifdef HAVE_CONN_COMPLETION_GET
    check(life.client.conn, rpma_conn_completion_get);
#endif
#ifdef HAVE_CQ_GET_COMPLETION
    check(life.client.conn, get_from_cq);
#endif
    life_close(&life);
    return 0;
}
