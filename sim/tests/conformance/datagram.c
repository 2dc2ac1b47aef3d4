// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// datagram.c -- sends datagrams from one UD QP to another of the same device, and prints the
// members of their completions and the header in front of the data. The output has the format
// of conformance.c.

#include "conformance.h"

#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <time.h>

// LIMIT: seconds until a step fails; SHORT_LIMIT: until a datagram is lost
enum { HEADER = 40, DATA = 8, BYTES = 256, LIMIT = 30, SHORT_LIMIT = 1 };
enum { QKEY = 0x1234, FILLER = 0x5a, TRAFFIC_CLASS = 0x20, HOPS = 9 };
enum { NO_WC = -1 }; // the status of a missing completion

static struct ibv_context *device;
static struct ibv_pd *pd;
static struct ibv_cq *send_cq, *recv_cq;
static struct ibv_mr *mr;
static struct ibv_qp *from, *to;
static uint8_t memory[BYTES]; // a receive, and the data at its end
static union ibv_gid gid;     // of the address of the device

// ---- objects -------------------------------------------------------------------------------

static uint8_t index_of(bool is_ip4) {
    static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};
    for (uint8_t i = 0; ibv_query_gid(device, 1, i, &gid) == 0; i++)
        if (is_ip4 ? memcmp(gid.raw, prefix, sizeof(prefix)) == 0 &&
                         memcmp(gid.raw + 12, &own.in.sin_addr, 4) == 0
                   : gid.raw[0] == 0xfe)
            return i;
    must(false, "finding the GID");
    return 0;
}

static struct ibv_qp *create_qp(void) {
    struct ibv_qp_init_attr init = {
        .send_cq = send_cq, .recv_cq = recv_cq, .cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_UD};
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
    struct ibv_qp *const qp = ibv_create_qp(pd, &init);
    must(qp, "ibv_create_qp()");
    MUST(
        ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
    attr.qp_state = IBV_QPS_RTR;
    MUST(ibv_modify_qp(qp, &attr, IBV_QP_STATE));
    attr.qp_state = IBV_QPS_RTS;
    MUST(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
    return qp;
}

static void establish(void) {
    must((pd = ibv_alloc_pd(device)), "ibv_alloc_pd()");
    must((send_cq = ibv_create_cq(device, 4, NULL, NULL, 0)), "ibv_create_cq()");
    must((recv_cq = ibv_create_cq(device, 4, NULL, NULL, 0)), "ibv_create_cq()");
    must((mr = ibv_reg_mr(pd, memory, BYTES, IBV_ACCESS_LOCAL_WRITE)), "ibv_reg_mr()");
    from = create_qp();
    to = create_qp();
    memset(memory, FILLER, BYTES);
}

static void finish(void) {
    MUST(ibv_destroy_qp(from));
    MUST(ibv_destroy_qp(to));
    MUST(ibv_dereg_mr(mr));
    MUST(ibv_destroy_cq(send_cq));
    MUST(ibv_destroy_cq(recv_cq));
    MUST(ibv_dealloc_pd(pd));
}

// ---- results -------------------------------------------------------------------------------

static struct ibv_wc next_wc(struct ibv_cq *cq, int seconds) {
    struct timespec since, now;
    struct ibv_wc wc;
    memset(&wc, FILLER, sizeof(wc));
    clock_gettime(CLOCK_MONOTONIC, &since);
    while (ibv_poll_cq(cq, 1, &wc) == 0) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec - since.tv_sec > seconds)
            return (struct ibv_wc){.status = (enum ibv_wc_status)NO_WC};
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return wc;
}

static const char *number_of(uint32_t qp) {
    return qp == from->qp_num ? "of the sender" : qp == to->qp_num ? "of the receiver" : "0";
}

static void show_wc(const char *name, const char *part, const struct ibv_wc *wc) {
    printf("%s: %s\t", name, part);
    if ((int)wc->status == NO_WC) {
        puts("none");
        return;
    }
    if (wc->status != IBV_WC_SUCCESS) {
        puts(ibv_wc_status_str(wc->status));
        return;
    }
    printf("opcode %d, %u bytes, flags %x, data %x\n", wc->opcode, wc->byte_len, wc->wc_flags,
           ntohl(wc->imm_data));
    printf("%s: source of the %s\tQP %s, SLID %u, SL %u, P_Key %u, path bits %u\n", name, part,
           number_of(wc->src_qp), wc->slid, wc->sl, wc->pkey_index, wc->dlid_path_bits);
}

static const char *content_of(const uint8_t *bytes, size_t count) {
    const uint8_t first = bytes[0];
    for (size_t i = 1; i < count; i++)
        if (bytes[i] != first)
            return "other";
    return first == 0 ? "zeros" : first == FILLER ? "not written" : "other";
}

static void show_ip4(const char *name) {
    struct ip ip;
    memcpy(&ip, memory + HEADER - sizeof(ip), sizeof(ip));
    printf("%s: before the header\t%s\n", name, content_of(memory, HEADER - sizeof(ip)));
    printf("%s: header\tversion %d, TOS %#x, %d bytes, offset %#x, TTL %d, protocol %d\n", name,
           ip.ip_v, ip.ip_tos, ntohs(ip.ip_len), ntohs(ip.ip_off), ip.ip_ttl, ip.ip_p);
    const bool is_own = memcmp(&ip.ip_src, &own.in.sin_addr, sizeof(ip.ip_src)) == 0 &&
                        memcmp(&ip.ip_dst, &own.in.sin_addr, sizeof(ip.ip_dst)) == 0;
    printf("%s: addresses\t%s\n", name, is_own ? "of both" : "others");
}

static void show_ip6(const char *name) {
    struct ip6_hdr ip;
    memcpy(&ip, memory, sizeof(ip));
    const uint32_t flow = ntohl(ip.ip6_flow);
    printf("%s: header\tversion %u, class %#x, %d bytes, hops %d, next header %d\n", name,
           flow >> 28, flow >> 20 & 0xff, ntohs(ip.ip6_plen), ip.ip6_hlim, ip.ip6_nxt);
    const bool is_own = memcmp(&ip.ip6_src, &gid, sizeof(gid)) == 0 &&
                        memcmp(&ip.ip6_dst, &gid, sizeof(gid)) == 0;
    printf("%s: addresses\t%s\n", name, is_own ? "of both" : "others");
}

// ---- the table -----------------------------------------------------------------------------

enum mistake { NONE, NO_RECEIVE, SHORT_RECEIVE, RECEIVE_KEY, WRONG_QKEY };

static const struct {
    const char *name;
    bool is_ip4;
    enum ibv_wr_opcode opcode;
    enum mistake mistake;
} rows[] = {
    {"datagram", true, IBV_WR_SEND, NONE},
    {"datagram with data", true, IBV_WR_SEND_WITH_IMM, NONE},
    {"datagram of IPv6", false, IBV_WR_SEND, NONE},
    {"datagram, no receive", true, IBV_WR_SEND, NO_RECEIVE},
    {"datagram, short receive", true, IBV_WR_SEND, SHORT_RECEIVE},
    {"datagram, key of the receive", true, IBV_WR_SEND, RECEIVE_KEY},
    {"datagram, Q_Key", true, IBV_WR_SEND, WRONG_QKEY},
};

static void send_datagram(const char *name, struct ibv_ah_attr *address,
                          enum ibv_wr_opcode opcode, enum mistake mistake) {
    struct ibv_sge in = {(uintptr_t)memory, mistake == SHORT_RECEIVE ? HEADER : HEADER + DATA,
                         mistake == RECEIVE_KEY ? mr->lkey ^ 0xff00 : mr->lkey};
    struct ibv_sge out = {(uintptr_t)memory + BYTES - DATA, DATA, mr->lkey};
    struct ibv_recv_wr recv = {.wr_id = 2, .sg_list = &in, .num_sge = 1}, *bad_recv;
    struct ibv_send_wr send = {.wr_id = 1,
                               .sg_list = &out,
                               .num_sge = 1,
                               .opcode = opcode,
                               .send_flags = IBV_SEND_SIGNALED,
                               .imm_data = htonl(0x12345678),
                               .wr.ud = {.remote_qpn = to->qp_num,
                                         .remote_qkey =
                                             mistake == WRONG_QKEY ? QKEY + 1 : QKEY}},
                       *bad_send;
    if (mistake != NO_RECEIVE)
        MUST(ibv_post_recv(to, &recv, &bad_recv));
    must((send.wr.ud.ah = ibv_create_ah(pd, address)), "ibv_create_ah()");
    MUST(ibv_post_send(from, &send, &bad_send));
    const struct ibv_wc wc = next_wc(send_cq, LIMIT);
    must((int)wc.status != NO_WC, "the completion of a datagram");
    show_wc(name, "completion", &wc);
    MUST(ibv_destroy_ah(send.wr.ud.ah));
}

// Address handles of the device's own address, with another source.
static void test_sources(void) {
    establish();
    const uint8_t of_ip6 = index_of(false), of_ip4 = index_of(true); // sets gid
    struct ibv_port_attr port;
    MUST(ibv_query_port(device, 1, &port));
    const struct {
        const char *name;
        uint8_t index;
    } sources[] = {{"address handle, GID of IPv4", of_ip4},
                   {"address handle, GID of IPv6", of_ip6},
                   {"address handle, empty GID",
                    (uint8_t)(port.gid_tbl_len > 255 ? 255 : port.gid_tbl_len - 1)}};
    for (size_t i = 0; i < LENGTH(sources); i++) {
        struct ibv_ah_attr address = {
            .is_global = 1,
            .port_num = 1,
            .grh = {.sgid_index = sources[i].index, .dgid = gid, .hop_limit = HOPS}};
        struct ibv_ah *const made = ibv_create_ah(pd, &address);
        if (print_object(sources[i].name, made))
            MUST(ibv_destroy_ah(made));
        struct ibv_qp_init_attr init = {.send_cq = send_cq,
                                        .recv_cq = recv_cq,
                                        .cap = {1, 1, 1, 1, 0},
                                        .qp_type = IBV_QPT_RC};
        struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
        struct ibv_qp *const qp = ibv_create_qp(pd, &init);
        must(qp, "ibv_create_qp()");
        MUST(ibv_modify_qp(
            qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
        attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                                    .path_mtu = IBV_MTU_1024,
                                    .dest_qp_num = from->qp_num,
                                    .max_dest_rd_atomic = 1,
                                    .min_rnr_timer = 12,
                                    .ah_attr = address};
        const int ret =
            ibv_modify_qp(qp, &attr,
                          IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                              IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
        printf("%s: path of a connection\t%s\n", sources[i].name, result_of(ret));
        MUST(ibv_destroy_qp(qp));
    }
    finish();
}

static void run_case(size_t index) {
    if (index == LENGTH(rows))
        return test_sources();
    const char *const name = rows[index].name;
    establish();
    const uint8_t gid_index = index_of(rows[index].is_ip4);
    struct ibv_ah_attr address = {.is_global = 1,
                                  .port_num = 1,
                                  .grh = {.sgid_index = gid_index,
                                          .dgid = gid,
                                          .hop_limit = HOPS,
                                          .traffic_class = TRAFFIC_CLASS}};
    send_datagram(name, &address, rows[index].opcode, rows[index].mistake);
    const struct ibv_wc wc =
        next_wc(recv_cq, rows[index].mistake == NONE ? LIMIT : SHORT_LIMIT);
    show_wc(name, "receive", &wc);
    if (wc.status == IBV_WC_SUCCESS && rows[index].is_ip4)
        show_ip4(name);
    else if (wc.status == IBV_WC_SUCCESS)
        show_ip6(name);
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    MUST(ibv_query_qp(to, &attr, IBV_QP_STATE, &init));
    printf("%s: state of the receiver\t%d\n", name, attr.qp_state);
    finish();
}

static bool prepare(const char *address) {
    if (!set_address(address))
        return false;
    device = bound_id()->verbs;
    return true;
}

const struct cases datagram_cases = {"datagram", prepare, LENGTH(rows) + 1, run_case};
