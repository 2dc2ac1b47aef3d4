// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// cpp.cc -- the loops of rpma.c and batch_rpma.c with librpma.hpp
//
// A loop has the name of its counterpart in C. Where compilers generate other code in C++ to
// fill structures or to iterate over a list, the counterpart is NAME_in_c, which calls the C
// function.

#include <array>
#include <librpma.hpp>

#include "loops.h"
#include "rpma_setup.h"

namespace {

constexpr unsigned LENGTH = 16, MAX_WORKS = 128;
constexpr int ALWAYS = RPMA_F_COMPLETION_ALWAYS;

// Own the objects that create_objects() created; set when the first loop runs.
rpma::conn connection, shared_connection;
rpma::mr_local local_mr;
rpma::mr_remote remote_mr;
rpma::cq_ref completed, none_completed;

void take_ownership() {
    if (connection != nullptr)
        return;
    connection = rpma::conn(conn);
    shared_connection = rpma::conn(shared_conn);
    local_mr = rpma::mr_local(local);
    remote_mr = rpma::mr_remote(remote);
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
        take_ownership();                                                      \
        repeat(times, rpma::status::expected, [&]() noexcept { __VA_ARGS__ }); \
    }

// clang-format off
LOOP(write, ok, return connection.write(remote_mr, 0, local_mr, 0, TRANSFER_BYTES, ALWAYS);)
LOOP(read, ok, return connection.read(local_mr, 0, remote_mr, 0, TRANSFER_BYTES, ALWAYS);)
LOOP(flush, ok, return connection.flush(remote_mr, 0, TRANSFER_BYTES, RPMA_FLUSH_TYPE_PERSISTENT, ALWAYS);)
LOOP(atomic_write, ok, static const char bytes[ATOMIC_BYTES] = {};
     return connection.atomic_write(remote_mr, 0, bytes, ALWAYS);)
LOOP(send, ok, return connection.send(local_mr, 0, TRANSFER_BYTES, ALWAYS);)
LOOP(recv, ok, return connection.recv(local_mr, 0, TRANSFER_BYTES);)
LOOP(poll, ok, ibv_wc wc; return completed.get_wc(wc);)
LOOP(poll_empty, no_completion, ibv_wc wc; return none_completed.get_wc(wc);)
LOOP(wait, ok, return completed.wait();)
LOOP(conn_wait, ok, static rpma::cq_ref ready; return shared_connection.wait(ready);)
// clang-format on

// Polls the completions, and checks each of them.
void poll_many_loop(unsigned long times) {
    take_ownership();
    std::array<ibv_wc, LENGTH> wcs{}; // the provider does not write to it
    for (unsigned long i = 0; i < times; i++) {
        const rpma::completions taken = completed.get_wc(wcs);
        must(taken.status() == rpma::status::ok, "rpma::cq_ref::get_wc");
        for (const ibv_wc &wc : taken)
            must(wc.status == IBV_WC_SUCCESS, "the completion");
    }
}

void poll_many_in_c(unsigned long times) {
    take_ownership();
    std::array<ibv_wc, LENGTH> wcs{}; // the provider does not write to it
    int got;
    for (unsigned long i = 0; i < times; i++) {
        must(rpma_cq_get_wc(completed, LENGTH, wcs.data(), &got) == 0, "rpma_cq_get_wc");
        for (const ibv_wc &wc : std::span(wcs).first(static_cast<std::size_t>(got)))
            must(wc.status == IBV_WC_SUCCESS, "the completion");
    }
}

[[gnu::always_inline]] inline rpma::write a_write() {
    return {
        .remote = remote_mr, .local = {.mr = local_mr, .len = TRANSFER_BYTES}, .flags = ALWAYS};
}

[[gnu::always_inline]] inline rpma_work a_write_in_c() {
    rpma_work work = {};
    work.type = RPMA_WORK_WRITE;
    work.remote = remote_mr;
    work.local = {local_mr, 0, TRANSFER_BYTES};
    work.flags = ALWAYS;
    return work;
}

void array_write_loop(unsigned long times) {
    take_ownership();
    for (unsigned long i = 0; i < times; i++) {
        std::array<rpma_work, LENGTH> works;
        for (rpma_work &work : works)
            work = a_write();
        must(connection.post(works) == rpma::status::ok, "rpma::conn::post");
    }
}

void array_write_in_c(unsigned long times) {
    take_ownership();
    for (unsigned long i = 0; i < times; i++) {
        std::array<rpma_work, LENGTH> works;
        for (rpma_work &work : works)
            work = a_write_in_c();
        must(rpma_post(connection, works.data(), LENGTH, nullptr) == 0, "rpma_post");
    }
}

void array_recv_loop(unsigned long times) {
    take_ownership();
    for (unsigned long i = 0; i < times; i++) {
        std::array<rpma_receive, LENGTH> receives;
        for (rpma_receive &receive : receives)
            receive = rpma::recv{.local = {.mr = local_mr, .len = TRANSFER_BYTES}};
        must(connection.recv_many(receives) == rpma::status::ok, "rpma::conn::recv_many");
    }
}

void prepared_write_loop(unsigned long times) {
    take_ownership();
    rpma::batch batch(connection, MAX_WORKS);
    for (unsigned n = 0; n < LENGTH; n++)
        must(batch.add(a_write()) == rpma::status::ok, "rpma::batch::add");
    for (unsigned long i = 0; i < times; i++)
        must(batch.post() == rpma::status::ok, "rpma::batch::post");
}

void built_write_loop(unsigned long times) {
    take_ownership();
    rpma::batch batch(connection, MAX_WORKS);
    for (unsigned long i = 0; i < times; i++) {
        must(batch.reset() == rpma::status::ok, "rpma::batch::reset");
        for (unsigned n = 0; n < LENGTH; n++)
            must(batch.add(a_write()) == rpma::status::ok, "rpma::batch::add");
        must(batch.post() == rpma::status::ok, "rpma::batch::post");
    }
}

void built_write_in_c(unsigned long times) {
    take_ownership();
    rpma_batch *batch;
    must(rpma_batch_new(connection, MAX_WORKS, &batch) == 0, "rpma_batch_new");
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
    take_ownership();
    rpma::batch batch(connection, MAX_WORKS);
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

extern "C" void add_settings(rpma_conn_cfg *) {}

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
