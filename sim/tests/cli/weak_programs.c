// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// weak_programs.c -- the clients and the servers of weak.c

#include "weak.h"

// ---- the clients ---------------------------------------------------------------------------

// Reads the word "source" of the server, and then changes a word of the server.
static void read_and_write(uint64_t *read, uint64_t *written, uint64_t *changed) {
    must(!post_request(IBV_WR_RDMA_READ, read, &memory->source, 8, IBV_SEND_SIGNALED), "read");
    must(!post_request(IBV_WR_RDMA_WRITE, written, changed, 8,
                       IBV_SEND_SIGNALED | (is_fixed ? IBV_SEND_FENCE : 0)),
         "write");
    for (int i = 0; i < 2; i++)
        must(completion(id->send_cq).status == IBV_WC_SUCCESS, "a request failed");
}

// Copies a word of the server to another one, through a buffer.
static void copy_word(void) {
    memory->source = 0;
    read_and_write(&memory->source, &memory->source, &memory->target);
    complete_request(IBV_WR_RDMA_READ, &memory->result, &memory->target, 8);
    must(memory->result == 7, "the copy has no data");
}

// Adds to a word of the server after a read of it, which returns the value before.
static void read_then_write(void) {
    read_and_write(&memory->result, &memory->target, &memory->source);
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

// Reads a record whose version, the first word, is odd while the server changes it. The fixed
// form reads the version again, each time alone.
static void read_record(void) {
    for (int found = 0; found < 4; usleep(500)) {
        if (is_fixed)
            complete_request(IBV_WR_RDMA_READ, &memory->result, memory->words, 8);
        complete_request(IBV_WR_RDMA_READ, memory->words, memory->words, 32);
        if (is_fixed) {
            const uint64_t before = memory->result;
            complete_request(IBV_WR_RDMA_READ, &memory->result, memory->words, 8);
            if (memory->result != before || before % 2 != 0)
                continue;
        }
        if (memory->words[0] % 2 != 0)
            continue;
        for (int i = 2; i < 4; i++)
            must(memory->words[i] == memory->words[1], "words of different versions");
        found++;
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

static void change_record(void) {
    volatile uint64_t *const words = memory->words;
    for (uint64_t version = 2; version <= 40; version += 2) {
        words[0] = version - 1;
        for (int i = 1; i < 4; i++) {
            words[i] = version;
            usleep(i == 2 ? 100 : 0);
        }
        words[0] = version;
        usleep(1000);
    }
    wait_for_client();
}

const struct program PROGRAMS[] = {
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
    {"seqlock", read_record, change_record},
};
const size_t PROGRAM_COUNT = sizeof(PROGRAMS) / sizeof(PROGRAMS[0]);
