// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// cpp.cc -- the loops of rpma.c and batch_rpma.c as a user of librpma.hpp writes them
//
// A loop has the name of the one in C that does the same. Where compilers fill structures or go
// through a list in another way in C++, NAME_in_c is its twin, which calls the C function.

#include <array>
#include <librpma.hpp>

#include "loops.h"
#include "rpma_side.h"

namespace {

constexpr unsigned LENGTH = 16, MOST_WORKS = 128;
constexpr int ALWAYS = RPMA_F_COMPLETION_ALWAYS;

// Owners of what connect_side() made; set when the loops run for the first time.
rpma::conn through, through_shared;
rpma::mr_local here;
rpma::mr_remote there;
rpma::cq_ref completed, none_completed;

void own_all() {
    if (through != nullptr)
        return;
    through = rpma::conn(conn);
    through_shared = rpma::conn(shared_conn);
    here = rpma::mr_local(local);
    there = rpma::mr_remote(remote);
    completed = rpma::cq_ref(cq);
    none_completed = rpma::cq_ref(empty_cq);
}

template <class Call>
inline void repeat(unsigned long times, rpma::status expected, const Call &call) {
    for (unsigned long i = 0; i < times; i++)
        must(call() == expected, "a call of librpma.hpp");
}

#define LOOP(name, expected, ...)                                              \
    void name##_loop(unsigned long times) {                                    \
        own_all();                                                             \
        repeat(times, rpma::status::expected, [&]() noexcept { __VA_ARGS__ }); \
    }

// clang-format off
LOOP(write, ok, return through.write(there, 0, here, 0, TRANSFER_BYTES, ALWAYS);)
LOOP(read, ok, return through.read(here, 0, there, 0, TRANSFER_BYTES, ALWAYS);)
LOOP(flush, ok, return through.flush(there, 0, TRANSFER_BYTES, RPMA_FLUSH_TYPE_PERSISTENT, ALWAYS);)
LOOP(atomic_write, ok, static const char bytes[ATOMIC_BYTES] = {};
     return through.atomic_write(there, 0, bytes, ALWAYS);)
LOOP(send, ok, return through.send(here, 0, TRANSFER_BYTES, ALWAYS);)
LOOP(recv, ok, return through.recv(here, 0, TRANSFER_BYTES);)
LOOP(poll, ok, ibv_wc wc; return completed.get_wc(wc);)
LOOP(poll_empty, no_completion, ibv_wc wc; return none_completed.get_wc(wc);)
LOOP(wait, ok, return completed.wait();)
LOOP(conn_wait, ok, static rpma::cq_ref ready; return through_shared.wait(ready);)
// clang-format on

// Takes the completions, and checks each of them.
void poll_many_loop(unsigned long times) {
    own_all();
    std::array<ibv_wc, LENGTH> room{}; // the provider leaves the memory alone
    for (unsigned long i = 0; i < times; i++) {
        const rpma::completions taken = completed.get_wc(room);
        must(taken.status() == rpma::status::ok, "rpma::cq_ref::get_wc");
        for (const ibv_wc &wc : taken)
            must(wc.status == IBV_WC_SUCCESS, "the completion");
    }
}

void poll_many_in_c(unsigned long times) {
    own_all();
    std::array<ibv_wc, LENGTH> room{}; // the provider leaves the memory alone
    int got;
    for (unsigned long i = 0; i < times; i++) {
        must(rpma_cq_get_wc(completed, LENGTH, room.data(), &got) == 0, "rpma_cq_get_wc");
        for (const ibv_wc &wc : std::span(room).first(static_cast<std::size_t>(got)))
            must(wc.status == IBV_WC_SUCCESS, "the completion");
    }
}

[[gnu::always_inline]] inline rpma::write a_write() {
    return {.remote = there, .local = {.mr = here, .len = TRANSFER_BYTES}, .flags = ALWAYS};
}

[[gnu::always_inline]] inline rpma_work a_write_in_c() {
    rpma_work work = {};
    work.type = RPMA_WORK_WRITE;
    work.remote = there;
    work.local = {here, 0, TRANSFER_BYTES};
    work.flags = ALWAYS;
    return work;
}

void array_write_loop(unsigned long times) {
    own_all();
    for (unsigned long i = 0; i < times; i++) {
        std::array<rpma_work, LENGTH> works;
        for (rpma_work &work : works)
            work = a_write();
        must(through.post(works) == rpma::status::ok, "rpma::conn::post");
    }
}

void array_write_in_c(unsigned long times) {
    own_all();
    for (unsigned long i = 0; i < times; i++) {
        std::array<rpma_work, LENGTH> works;
        for (rpma_work &work : works)
            work = a_write_in_c();
        must(rpma_post(through, works.data(), LENGTH, nullptr) == 0, "rpma_post");
    }
}

void array_recv_loop(unsigned long times) {
    own_all();
    for (unsigned long i = 0; i < times; i++) {
        std::array<rpma_receive, LENGTH> receives;
        for (rpma_receive &receive : receives)
            receive = rpma::recv{.local = {.mr = here, .len = TRANSFER_BYTES}};
        must(through.recv_many(receives) == rpma::status::ok, "rpma::conn::recv_many");
    }
}

void prepared_write_loop(unsigned long times) {
    own_all();
    rpma::batch batch(through, MOST_WORKS);
    for (unsigned n = 0; n < LENGTH; n++)
        must(batch.add(a_write()) == rpma::status::ok, "rpma::batch::add");
    for (unsigned long i = 0; i < times; i++) {
        uint32_t posted;
        must(batch.post(&posted) == rpma::status::ok, "rpma::batch::post");
    }
}

void built_write_loop(unsigned long times) {
    own_all();
    rpma::batch batch(through, MOST_WORKS);
    for (unsigned long i = 0; i < times; i++) {
        must(batch.reset() == rpma::status::ok, "rpma::batch::reset");
        for (unsigned n = 0; n < LENGTH; n++)
            must(batch.add(a_write()) == rpma::status::ok, "rpma::batch::add");
        must(batch.post() == rpma::status::ok, "rpma::batch::post");
    }
}

void built_write_in_c(unsigned long times) {
    own_all();
    rpma_batch *batch;
    must(rpma_batch_new(through, MOST_WORKS, &batch) == 0, "rpma_batch_new");
    for (unsigned long i = 0; i < times; i++) {
        must(rpma_batch_reset(batch) == 0, "rpma_batch_reset");
        for (unsigned n = 0; n < LENGTH; n++) {
            const rpma_work work = a_write_in_c();
            must(rpma_batch_add(batch, &work) == 0, "rpma_batch_add");
        }
        must(rpma_batch_post(batch, nullptr) == 0, "rpma_batch_post");
    }
    rpma_batch_delete(&batch);
}

void set_write_loop(unsigned long times) {
    own_all();
    rpma::batch batch(through, MOST_WORKS);
    rpma_work work = a_write();
    for (unsigned n = 0; n < LENGTH; n++)
        must(batch.add(work) == rpma::status::ok, "rpma::batch::add");
    for (unsigned long i = 0; i < times; i++)
        for (unsigned n = 0; n < LENGTH; n++) {
            work.remote_offset = n;
            must(batch.set(n, work) == rpma::status::ok, "rpma::batch::set");
        }
}

} // namespace

extern "C" void adapt_side(rpma_conn_cfg *) {}

const struct loop loops[] = {
    {"write", write_loop},
    {"read", read_loop},
    {"flush", flush_loop},
    {"atomic_write", atomic_write_loop},
    {"send", send_loop},
    {"recv", recv_loop},
    {"poll", poll_loop},
    {"poll_empty", poll_empty_loop},
    {"poll_many", poll_many_loop},
    {"poll_many_in_c", poll_many_in_c},
    {"wait", wait_loop},
    {"conn_wait", conn_wait_loop},
    {"array_write_16", array_write_loop},
    {"array_write_16_in_c", array_write_in_c},
    {"array_recv_16", array_recv_loop},
    {"prepared_write_16", prepared_write_loop},
    {"built_write_16", built_write_loop},
    {"built_write_16_in_c", built_write_in_c},
    {"set_write_16", set_write_loop},
    {},
};
