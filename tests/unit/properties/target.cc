// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// target.cc -- see target.h

#include "target.h"

#include "direct/direct.hh"

#include <arpa/inet.h>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <rdma/rdma_cma.h>

namespace {

constexpr size_t WORD = sizeof(uint64_t), WORDS = 1100;
constexpr size_t BEGINS[TARGET_REGIONS] = {0, (TARGET_SIZE / WORD + 1) * WORD + 5};
static_assert(BEGINS[1] + TARGET_SIZE <= WORDS * WORD);

uint64_t now[WORDS], kept[WORDS], found[WORDS]; // newest, persistent, after a failure

void require(bool holds, const char *what) {
    if (holds)
        return;
    perror(what);
    abort();
}

// Keeps the stores to the memory of host 2 that are not persistent.
class Memory : public sim::Persistence {
  public:
    void registered(int, const sim::Region &) override {}
    void deregistered(int, const sim::Region &) override {}
    void written(int, uint64_t address, size_t length, uint32_t writer) override {
        if (!is_persistent(0, address, length))
            return;
        for (uint32_t word = word_of(address); word <= word_of(address + length - 1); word++)
            sim_add_store(&stores_, {word, writer, now[word]});
    }
    void persist(int, uint64_t address, size_t length, uint32_t writer) override {
        sim_flush_stores(&stores_, writer, word_of(address), word_of(address + length - 1) + 1);
    }
    bool is_persistent(int, uint64_t address, size_t) override {
        return address - begin() < sizeof(now);
    }
    void clear() {
        memset(now, 0, sizeof(now));
        memset(kept, 0, sizeof(kept));
        stores_.count = 0;
    }
    size_t lose_power(uint64_t survivors) {
        memcpy(found, kept, sizeof(found));
        sim_lose_power(&stores_, found, survive, &survivors);
        return stores_.count;
    }

  private:
    static uint64_t begin() { return reinterpret_cast<uint64_t>(now); }
    static uint32_t word_of(uint64_t address) {
        return static_cast<uint32_t>((address - begin()) / WORD);
    }
    static uint64_t survive(void *survivors) { // the next bit decides about the whole word
        uint64_t *const bits = static_cast<uint64_t *>(survivors), first = *bits & 1;
        *bits = *bits >> 1 | first << 63;
        return -first;
    }
    uint32_t settled_[WORDS] = {};
    sim_stores stores_ = {kept, settled_, 0, nullptr, 0, 0};
} memory;

sim_profile profile;
struct Target {
    explicit Target(const sim::Options &options) : direct(options, &memory) {}
    sim::Direct direct;
    rdma_event_channel *channel = nullptr;
    rdma_cm_id *listener = nullptr, *connections[2] = {};
    unsigned count = 0;
    ibv_pd *pd = nullptr;
    ibv_mr *mrs[TARGET_REGIONS] = {};
    target_region regions[TARGET_REGIONS] = {};
};
std::unique_ptr<Target> target;

// Skips events of earlier connections.
rdma_cm_event *next_request() {
    rdma_cm_event *event = nullptr;
    while (rdma_get_cm_event(target->channel, &event) == 0) {
        if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
            return event;
        rdma_ack_cm_event(event);
    }
    require(false, "rdma_get_cm_event");
    return nullptr;
}

void register_regions(ibv_context *context) {
    const unsigned access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                            IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                            (profile.has_native_flush ? SIM_ACCESS_FLUSH_PERSISTENT : 0);
    target->pd = ibv_alloc_pd(context);
    for (int region = 0; region < TARGET_REGIONS; region++) {
        char *const begin = reinterpret_cast<char *>(now) + BEGINS[region];
        ibv_mr *const mr = ibv_reg_mr(target->pd, begin, TARGET_SIZE, static_cast<int>(access));
        require(mr, "ibv_reg_mr");
        target->mrs[region] = mr;
        target->regions[region] = {reinterpret_cast<uint64_t>(begin), mr->rkey};
    }
}

} // namespace

void target_start(bool has_native_flush, bool has_native_atomic_write) {
    profile = *sim_find_profile("rxe");
    profile.has_odp = false;
    profile.has_native_flush = has_native_flush;
    profile.has_native_atomic_write = has_native_atomic_write;
    sim::Options options;
    options.profile = &profile;
    options.platform = has_native_flush ? SIM_CPU_FLUSH : SIM_FLUSH_ONLY;
    target = std::make_unique<Target>(options);
    target->direct.use_host(2);
    target->channel = rdma_create_event_channel();
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(atoi(TARGET_PORT)));
    inet_pton(AF_INET, TARGET_ADDRESS, &address.sin_addr);
    require(rdma_create_id(target->channel, &target->listener, nullptr, RDMA_PS_TCP) == 0 &&
                rdma_bind_addr(target->listener, reinterpret_cast<sockaddr *>(&address)) == 0 &&
                rdma_listen(target->listener, 2) == 0,
            "host 2 cannot listen");
    target->direct.use_host(1);
}

const target_region *target_accept() {
    target->direct.use_host(2);
    rdma_cm_event *const event = next_request();
    rdma_cm_id *const id = target->connections[target->count] = event->id;
    const rdma_conn_param request = event->param.conn;
    rdma_ack_cm_event(event);
    if (!target->pd)
        register_regions(id->verbs);
    ibv_qp_init_attr attr = {};
    attr.qp_type = IBV_QPT_RC;
    attr.cap = {1, 8, 1, 1, 0};
    require(rdma_create_qp(id, target->pd, &attr) == 0, "rdma_create_qp");
    target->count++;
    for (uint32_t i = 0; i < attr.cap.max_recv_wr; i++) { // for writes with immediate data
        ibv_recv_wr wr = {}, *bad;
        require(ibv_post_recv(id->qp, &wr, &bad) == 0, "ibv_post_recv");
    }
    rdma_conn_param param = {};
    param.responder_resources = request.initiator_depth;
    param.initiator_depth = request.responder_resources;
    require(rdma_accept(id, &param) == 0, "rdma_accept");
    target->direct.use_host(1);
    return target->regions;
}

void target_stop() {
    const std::lock_guard held(target->direct.lock());
    target->direct.fabric().cut(1, 2, true);
}

void target_end() {
    target->direct.use_host(2);
    while (target->count > 0) {
        rdma_cm_id *const id = target->connections[--target->count];
        rdma_destroy_qp(id);
        rdma_destroy_id(id);
    }
    rdma_destroy_id(target->listener);
    rdma_destroy_event_channel(target->channel);
    for (ibv_mr *const mr : target->mrs)
        if (mr)
            ibv_dereg_mr(mr);
    if (target->pd)
        ibv_dealloc_pd(target->pd);
    target.reset();
}

void target_clear() {
    memory.clear();
}

size_t target_lose_power(uint64_t survivors) {
    return memory.lose_power(survivors);
}

const unsigned char *target_found(int region) {
    return reinterpret_cast<const unsigned char *>(found) + BEGINS[region];
}
