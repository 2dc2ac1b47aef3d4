// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// weak.c -- for each weakness of rdma-sim(1), a client that is right only under the strong
// model, and, with "fixed", the corrected one
//
// usage: weak NAME wrong|fixed [ADDRESS]    without ADDRESS: the server
//
// A side that detects an error ends with status 1.

#include <fcntl.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define GRH 40
#define QKEY 0x11111111
#define DATAGRAMS 4
#define QUEUE 8 // requests
#define RECORDS 4
#define RECORD 64 // bytes
#define FLAGGED "! is the flag of a text that has bytes in all words of a record"

struct datagram {
    uint32_t number, amount;
};

// The memory of each side, a region of one of them.
struct memory {
    uint64_t source, target, result, received, sum, ready;
    char records[RECORDS][RECORD];
    uint64_t words[8]; // within two cache lines
    char datagrams[QUEUE][GRH + 4096];
};

struct description {
    uint64_t address;
    uint32_t rkey, ud_number;
};

static struct rdma_event_channel *channel;
static struct rdma_cm_id *id;
static struct ibv_mr *mr;
static struct ibv_qp *ud;
static struct ibv_cq *ud_cq;
static struct memory *memory;
static struct description peer;
static bool is_fixed;

static void must(bool is_good, const char *what) {
    if (!is_good) {
        fprintf(stderr, "%s\n", what);
        _exit(1);
    }
}

static void prepare(void) {
    struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC};
    init.cap = (struct ibv_qp_cap){QUEUE, QUEUE, 1, 1, 0};
    must(!rdma_create_qp(id, NULL, &init), "rdma_create_qp");
    mr = ibv_reg_mr(id->pd, memory, sizeof(*memory),
                    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    must(mr, "ibv_reg_mr");
    ud_cq = ibv_create_cq(id->verbs, 64, NULL, NULL, 0);
    init = (struct ibv_qp_init_attr){.qp_type = IBV_QPT_UD, .send_cq = ud_cq, .recv_cq = ud_cq};
    init.cap = (struct ibv_qp_cap){32, 32, 1, 1, 0};
    ud = ibv_create_qp(id->pd, &init);
    if (!ud)
        return; // a device without datagrams
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
    must(
        !ibv_modify_qp(ud, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
        "INIT");
    attr.qp_state = IBV_QPS_RTR;
    must(!ibv_modify_qp(ud, &attr, IBV_QP_STATE), "RTR");
    attr.qp_state = IBV_QPS_RTS;
    must(!ibv_modify_qp(ud, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), "RTS");
}

static struct description own(void) {
    return (struct description){(uintptr_t)memory, mr->rkey, ud ? ud->qp_num : 0};
}

static struct sockaddr *address_of(const char *text) {
    static struct rdma_addrinfo *info;
    struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP,
                                  .ai_flags = text ? 0 : RAI_PASSIVE};
    must(!rdma_getaddrinfo(text, "7205", &hints, &info), "rdma_getaddrinfo");
    return text ? info->ai_dst_addr : info->ai_src_addr;
}

static void connect_to(const char *address) {
    must(!rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
    must(!rdma_resolve_addr(id, NULL, address_of(address), 2000), "rdma_resolve_addr");
    must(!rdma_resolve_route(id, 2000), "rdma_resolve_route");
    prepare();
    struct rdma_conn_param param = {.retry_count = 3, .rnr_retry_count = 7};
    param.responder_resources = param.initiator_depth = 4;
    must(!rdma_connect(id, &param), "rdma_connect");
    memcpy(&peer, id->event->param.conn.private_data, sizeof(peer));
}

static struct rdma_cm_id *next_event(enum rdma_cm_event_type type) {
    struct rdma_cm_event *event;
    must(!rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
    struct rdma_cm_id *const about = event->id;
    must(event->event == type, rdma_event_str(event->event));
    rdma_ack_cm_event(event);
    return about;
}

static void receive(unsigned slot) {
    struct ibv_sge sge = {(uintptr_t)memory->datagrams[slot], sizeof(memory->datagrams[0]),
                          mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;
    must(!ibv_post_recv(ud, &wr, &bad), "ibv_post_recv");
}

static void accept_client(void) {
    struct rdma_cm_id *listener = NULL;
    channel = rdma_create_event_channel();
    must(channel && !rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP), "rdma_create_id");
    must(!rdma_bind_addr(listener, address_of(NULL)), "rdma_bind_addr");
    must(!rdma_listen(listener, 1), "rdma_listen");
    id = next_event(RDMA_CM_EVENT_CONNECT_REQUEST);
    prepare();
    for (unsigned i = 0; ud && i < QUEUE; i++)
        receive(i);
    must(!rdma_post_recv(id, NULL, memory, 0, mr), "rdma_post_recv"); // of immediate data
    struct description description = own();
    struct rdma_conn_param param = {.private_data = &description,
                                    .private_data_len = sizeof(description)};
    param.responder_resources = param.initiator_depth = 4;
    must(!rdma_accept(id, &param), "rdma_accept");
    (void)next_event(RDMA_CM_EVENT_ESTABLISHED);
}

static int post_request(enum ibv_wr_opcode opcode, uint64_t *local, uint64_t *remote,
                        uint32_t length, unsigned flags) {
    struct ibv_sge sge = {(uintptr_t)local, length, mr->lkey};
    struct ibv_send_wr wr = {.opcode = opcode, .send_flags = flags, .num_sge = 1}, *bad;
    wr.sg_list = &sge;
    wr.wr.rdma.remote_addr = peer.address + ((uintptr_t)remote - (uintptr_t)memory);
    wr.wr.rdma.rkey = peer.rkey;
    return ibv_post_send(id->qp, &wr, &bad);
}

static struct ibv_wc completion(struct ibv_cq *cq) {
    struct ibv_wc wc;
    int count;
    memset(&wc, 0xff, sizeof(wc));
    while ((count = ibv_poll_cq(cq, 1, &wc)) == 0)
        usleep(100);
    must(count == 1, "ibv_poll_cq");
    return wc;
}

static void complete_request(enum ibv_wr_opcode opcode, uint64_t *local, uint64_t *remote,
                             uint32_t length) {
    must(!post_request(opcode, local, remote, length, IBV_SEND_SIGNALED), "ibv_post_send");
    must(completion(id->send_cq).status == IBV_WC_SUCCESS, "a request failed");
}

// ---- the clients ---------------------------------------------------------------------------

// Copies a word of the server to another one, through a buffer.
static void copy_word(void) {
    memory->source = 0;
    must(
        !post_request(IBV_WR_RDMA_READ, &memory->source, &memory->source, 8, IBV_SEND_SIGNALED),
        "read");
    must(!post_request(IBV_WR_RDMA_WRITE, &memory->source, &memory->target, 8,
                       IBV_SEND_SIGNALED | (is_fixed ? IBV_SEND_FENCE : 0)),
         "write");
    for (int i = 0; i < 2; i++)
        must(completion(id->send_cq).status == IBV_WC_SUCCESS, "a request failed");
    complete_request(IBV_WR_RDMA_READ, &memory->result, &memory->target, 8);
    must(memory->result == 7, "the copy has no data");
}

// Adds to a word of the server after a read of it, which returns the value before.
static void read_then_write(void) {
    must(
        !post_request(IBV_WR_RDMA_READ, &memory->result, &memory->source, 8, IBV_SEND_SIGNALED),
        "read");
    must(!post_request(IBV_WR_RDMA_WRITE, &memory->target, &memory->source, 8,
                       IBV_SEND_SIGNALED | (is_fixed ? IBV_SEND_FENCE : 0)),
         "write");
    for (int i = 0; i < 2; i++)
        must(completion(id->send_cq).status == IBV_WC_SUCCESS, "a request failed");
    must(memory->result == 7, "the read has returned a later value");
}

// Asks for no completion of most writes.
static void write_often(void) {
    for (unsigned i = 1; i <= 5 * QUEUE; i++) {
        const bool is_signaled = is_fixed && i % (QUEUE / 2) == 0;
        must(!post_request(IBV_WR_RDMA_WRITE, &memory->source, &memory->target, 8,
                           is_signaled ? IBV_SEND_SIGNALED : 0),
             "the send queue is full");
        if (is_signaled)
            must(completion(id->send_cq).status == IBV_WC_SUCCESS, "a write failed");
        usleep(200000); // longer than any delay
    }
}

// A read after the write makes it persistent.
static void store(void) {
    uint64_t *const record = (uint64_t *)memory->records[0];
    strcpy(memory->records[0], "record 1");
    complete_request(IBV_WR_RDMA_WRITE, record, record, RECORD);
    complete_request(IBV_WR_RDMA_READ, &memory->result, record, is_fixed ? 8 : 0);
    puts("stored 1");
    sleep(1);
}

static struct ibv_ah *peer_ah;

static void send_datagram(uint32_t number, uint32_t length) {
    if (!peer_ah) {
        struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
        attr.grh.dgid = id->route.addr.addr.ibaddr.dgid;
        attr.grh.hop_limit = 1;
        union ibv_gid gid;
        while (!ibv_query_gid(id->verbs, 1, attr.grh.sgid_index, &gid) &&
               memcmp(&gid, &id->route.addr.addr.ibaddr.sgid, sizeof(gid)))
            attr.grh.sgid_index++;
        peer_ah = ibv_create_ah(id->pd, &attr);
        must(peer_ah, "ibv_create_ah");
    }
    struct datagram *const datagram = (struct datagram *)memory->datagrams[0];
    *datagram = (struct datagram){number, 10};
    struct ibv_sge sge = {(uintptr_t)datagram, length, mr->lkey};
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .num_sge = 1}, *bad;
    wr.sg_list = &sge;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.ud.ah = peer_ah;
    wr.wr.ud.remote_qpn = peer.ud_number;
    wr.wr.ud.remote_qkey = QKEY;
    must(!ibv_post_send(ud, &wr, &bad), "ibv_post_send");
    must(completion(ud_cq).status == IBV_WC_SUCCESS, "a datagram failed");
}

// Sends each datagram again until the server has counted it.
static void send_datagrams(uint32_t length) {
    for (uint32_t i = 1; i <= DATAGRAMS; i++)
        do {
            send_datagram(i, length);
            if (!is_fixed)
                break;
            usleep(5000);
            complete_request(IBV_WR_RDMA_READ, &memory->received, &memory->received, 8);
        } while (memory->received < i);
}

static void send_small(void) {
    send_datagrams(sizeof(struct datagram));
}

static void send_large(void) {
    send_datagrams(is_fixed ? 1000 : 2000);
}

// Writes to a region that does not exist.
static void fail_write(void) {
    peer.rkey ^= 0xffffff00;
    must(!post_request(IBV_WR_RDMA_WRITE, &memory->source, &memory->target, 8,
                       IBV_SEND_SIGNALED),
         "write");
    const struct ibv_wc wc = completion(id->send_cq);
    must(wc.status != IBV_WC_SUCCESS, "the write succeeded");
    must(is_fixed || wc.opcode == IBV_WC_RDMA_WRITE, "the failure of an unknown operation");
}

// Writes words that are not zero. The fixed form also sends immediate data.
static void write_record(void) {
    for (uint64_t i = 0; i < 8; i++)
        memory->words[i] = i + 1;
    complete_request(is_fixed ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE, memory->words,
                     memory->words, sizeof(memory->words));
    complete_request(IBV_WR_RDMA_WRITE, &memory->source, &memory->target, 8);
    sleep(2);
}

// The value with all bits set is unaligned; in the fixed form it is a word.
static uint64_t *value_place(void) {
    return (uint64_t *)((char *)memory->words + (is_fixed ? 0 : 4));
}

static void write_value(void) {
    memset(memory->words, 0xff, sizeof(memory->words));
    complete_request(IBV_WR_RDMA_WRITE, value_place(), value_place(), 8);
    sleep(1);
}

// The tail of a ring has two words, number and position. The fixed form has both in one word.
static void write_tail(void) {
    for (uint64_t i = 1; i <= 8; i++) {
        memory->words[0] = is_fixed ? i << 32 | 10 * i : i;
        memory->words[1] = 10 * i;
        complete_request(IBV_WR_RDMA_WRITE, memory->words, memory->words, is_fixed ? 8 : 16);
        usleep(100);
    }
    sleep(1);
}

// A selector has two parts, which are equal: words, or in the fixed form halves of a word.
static void store_selector(void) {
    for (uint64_t i = 1; i <= 4; i++) {
        uint64_t *const selector = (uint64_t *)memory->records[0];
        selector[0] = selector[1] = is_fixed ? i << 32 | i : i;
        complete_request(IBV_WR_RDMA_WRITE, selector, selector, is_fixed ? 8 : 16);
        complete_request(IBV_WR_RDMA_READ, &memory->result, selector, 8);
    }
    sleep(1);
}

// The first byte is the flag of a record; the fixed form writes it after a read.
static void write_with_flag(void) {
    for (unsigned i = 0; i < RECORDS; i++) {
        char *const record = strcpy(memory->records[i], FLAGGED);
        uint64_t *const first = (uint64_t *)record, *const second = first + 1;
        if (is_fixed) {
            complete_request(IBV_WR_RDMA_WRITE, second, second, RECORD - 8);
            complete_request(IBV_WR_RDMA_READ, &memory->result, first, 8);
        }
        complete_request(IBV_WR_RDMA_WRITE, first, first, is_fixed ? 8 : RECORD);
        sleep(1);
    }
}

static void write_in_child(void) {
    memory->source = 9;
    const pid_t child = is_fixed ? 0 : fork();
    if (child == 0) {
        const int error = post_request(IBV_WR_RDMA_WRITE, &memory->source, &memory->target, 8,
                                       IBV_SEND_SIGNALED);
        if (!is_fixed)
            _exit(error);
        must(!error, "the post failed");
    } else {
        int status;
        must(waitpid(child, &status, 0) == child && status == 0, "the post of a child failed");
    }
    struct ibv_wc wc;
    for (int i = 0, count; (count = ibv_poll_cq(id->send_cq, 1, &wc)) != 1; i++) {
        must(count == 0 && i < 1000, "no completion");
        usleep(100);
    }
    must(wc.status == IBV_WC_SUCCESS, "the write failed");
}

// ---- the servers ---------------------------------------------------------------------------

// Waits for the end of the connection.
static void wait_for_client(void) {
    (void)next_event(RDMA_CM_EVENT_DISCONNECTED);
}

static struct datagram *next_datagram(void) {
    const struct ibv_wc wc = completion(ud_cq);
    must(wc.status == IBV_WC_SUCCESS, "a receive failed");
    static struct datagram found;
    memcpy(&found, memory->datagrams[wc.wr_id] + GRH, sizeof(found));
    receive((unsigned)wc.wr_id);
    return &found;
}

// The fixed server ignores each datagram other than the next one.
static void count_datagrams(void) {
    while (memory->received < DATAGRAMS) {
        const struct datagram *const datagram = next_datagram();
        if (!is_fixed || datagram->number == memory->received + 1)
            memory->received++;
    }
    wait_for_client();
}

static void check_order(void) {
    while (memory->received < DATAGRAMS) {
        const struct datagram *const datagram = next_datagram();
        if (is_fixed && datagram->number != memory->received + 1)
            continue;
        must(datagram->number == memory->received + 1, "a datagram is out of order");
        memory->received++;
    }
    wait_for_client();
}

static void add_amounts(void) {
    for (uint32_t last = 0; last < DATAGRAMS;) {
        const struct datagram *const datagram = next_datagram();
        if (is_fixed && datagram->number != memory->received + 1)
            continue;
        memory->sum += datagram->amount;
        last = datagram->number;
        memory->received++;
    }
    must(memory->sum == DATAGRAMS * 10, "the sum is wrong");
    wait_for_client();
}

static void poll_record(void) {
    const volatile uint64_t *const last = &memory->words[7];
    if (is_fixed)
        must(completion(id->recv_cq).status == IBV_WC_SUCCESS, "a receive failed");
    bool is_complete = true;
    while (*last == 0)
        usleep(100);
    for (uint64_t i = 0; i < 8; i++)
        is_complete &= memory->words[i] == i + 1;
    sleep(1); // the missing words become visible
    must(is_complete, "the record is incomplete");
    wait_for_client();
}

static void poll_value(void) {
    uint64_t value = 0;
    while (value != UINT64_MAX) {
        usleep(100);
        memcpy(&value, value_place(), sizeof(value));
        must(value == 0 || value == UINT64_MAX, "half of a value");
    }
    wait_for_client();
}

static void read_tail(void) {
    for (uint64_t number = 0; number < 8; usleep(100)) {
        const uint64_t first = __atomic_load_n(&memory->words[0], __ATOMIC_ACQUIRE);
        const uint64_t position = is_fixed ? first & UINT32_MAX : memory->words[1];
        number = is_fixed ? first >> 32 : first;
        must(position == 10 * number, "half of a tail");
    }
    wait_for_client();
}

static void read_flagged(void) {
    for (unsigned i = 0; i < RECORDS; i++) {
        const volatile char *const flag = memory->records[i];
        while (*flag == 0)
            usleep(100);
        must(!strcmp(memory->records[i], FLAGGED), "a flag without its data");
    }
    wait_for_client();
}

static const struct {
    const char *name;
    void (*client)(void), (*server)(void);
} PROGRAMS[] = {
    {"fence", copy_word, wait_for_client},
    {"fence-at-target", read_then_write, wait_for_client},
    {"send-queue", write_often, wait_for_client},
    {"empty-read", store, wait_for_client},
    {"datagram-loss", send_small, count_datagrams},
    {"datagram-order", send_small, check_order},
    {"datagram-repeat", send_small, add_amounts},
    {"datagram-mtu", send_large, count_datagrams},
    {"failed-completion", fail_write, wait_for_client},
    {"fork", write_in_child, wait_for_client},
    {"polled-record", write_record, poll_record},
    {"unaligned-value", write_value, poll_value},
    {"two-word-tail", write_tail, read_tail},
    {"selector", store_selector, wait_for_client},
    {"commit-flag", write_with_flag, read_flagged},
};

int main(int argc, char *argv[]) {
    must(argc == 3 || argc == 4, "usage: weak NAME wrong|fixed [ADDRESS]");
    const int fd = argc == 3 ? open("memory", O_RDWR) : -1;
    memory = mmap(NULL, sizeof(*memory), PROT_READ | PROT_WRITE,
                  fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
    must(memory != MAP_FAILED, "mmap");
    if (strcmp(argv[1], "empty-read") &&
        strcmp(argv[1], "selector")) // its server may start again, and keeps the record
        memset(memory, 0, sizeof(*memory));
    memory->source = 7;
    is_fixed = strcmp(argv[2], "fixed") == 0;
    for (size_t i = 0; i < sizeof(PROGRAMS) / sizeof(PROGRAMS[0]); i++) {
        if (strcmp(PROGRAMS[i].name, argv[1]))
            continue;
        if (argc == 3) {
            accept_client();
            PROGRAMS[i].server();
            return 0;
        }
        connect_to(argv[3]);
        PROGRAMS[i].client();
        rdma_disconnect(id);
        return 0;
    }
    must(false, "unknown NAME");
}
