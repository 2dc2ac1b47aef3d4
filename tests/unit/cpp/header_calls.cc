// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// header_calls.cc -- the data path of librpma.hpp makes the same provider calls as the C
// functions; connecting

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <string>

#include "header.hh"

// ---- the data path -----------------------------------------------------------------------

// A method, a named operation and the C function make the same request of the provider.
TEST_THAT(operations_equal_those_of_c) {
    objects all;
    rpma::mr_local target(all.peer, memory, FIXTURE_EVERY_USAGE | RPMA_MR_USAGE_ATOMIC);
    all.remote = std::move(rpma::unpack(rpma::packed({target})).regions.at(0));
    rpma_conn *const conn = all.conn;
    rpma_mr_remote *const remote = all.remote;
    rpma_mr_local *const mr = all.mr;
    static const int always = RPMA_F_COMPLETION_ALWAYS;
    static const char bytes[] = {1, 2, 3, 4, 5, 6, 7, 8};
    const void *const context = &all;
    const rpma_work work = {.type = RPMA_WORK_WRITE_WITH_IMM,
                            .imm = 3,
                            .remote = all.remote,
                            .remote_offset = 8,
                            .local = {.mr = all.mr, .offset = 16, .len = 24},
                            .flags = always,
                            .op_context = context};
    const rpma_sge two[] = {{mr, 16, 24}, {mr, 64, 8}};
    uint64_t value;
    std::memcpy(&value, bytes, sizeof(value));
    const auto posts = [&](auto work) {
        return [&all, work] { return all.conn.post({work}); };
    };
    const auto posts_in_c = [&](rpma_work c_work) {
        c_work.remote = remote, c_work.remote_offset = 8;
        c_work.flags = always, c_work.op_context = context;
        return [conn, c_work] { return rpma_post(conn, &c_work, 1, nullptr); };
    };
    // Some operations have no method or no named form.
    // clang-format off
#define BY(...) [&] { return __VA_ARGS__; }
    const struct {
        std::function<rpma::status()> ours, named;
        std::function<int()> theirs;
    } operations[] = {
        {BY(all.conn.read(all.mr, 8, all.remote, 16, 24, always, context)),
         posts(rpma::read{.remote = all.remote, .remote_offset = 16, .local = {all.mr, 8, 24},
                          .flags = always, .op_context = context}),
         BY(rpma_read(conn, mr, 8, remote, 16, 24, always, context))},
        {BY(all.conn.write(all.remote, 8, all.mr, 16, 24, always, context)),
         posts(rpma::write{.remote = all.remote, .remote_offset = 8, .local = {all.mr, 16, 24},
                           .flags = always, .op_context = context}),
         BY(rpma_write(conn, remote, 8, mr, 16, 24, always, context))},
        {BY(all.conn.write_with_imm(all.remote, 8, all.mr, 16, 24, always, 3, context)),
         posts(rpma::write{.remote = all.remote, .remote_offset = 8, .local = {all.mr, 16, 24}, .imm = 3,
                           .flags = always, .op_context = context}),
         BY(rpma_write_with_imm(conn, remote, 8, mr, 16, 24, always, 3, context))},
        {BY(all.conn.atomic_write(all.remote, 8, bytes, always, context)),
         posts(rpma::atomic_write{.remote = all.remote, .remote_offset = 8, .value = value,
                                  .flags = always, .op_context = context}),
         BY(rpma_atomic_write(conn, remote, 8, bytes, always, context))},
        {BY(all.conn.flush(all.remote, 8, 16, RPMA_FLUSH_TYPE_VISIBILITY, always, context)),
         posts(rpma::flush{.remote = all.remote, .remote_offset = 8, .len = 16,
                           .type = RPMA_FLUSH_TYPE_VISIBILITY, .flags = always, .op_context = context}),
         BY(rpma_flush(conn, remote, 8, 16, RPMA_FLUSH_TYPE_VISIBILITY, always, context))},
        {BY(all.conn.send(all.mr, 8, 16, always, context)),
         posts(rpma::send{.local = {all.mr, 8, 16}, .flags = always, .op_context = context}),
         BY(rpma_send(conn, mr, 8, 16, always, context))},
        {BY(all.conn.send_with_imm(all.mr, 8, 16, always, 3, context)),
         posts(rpma::send{.local = {all.mr, 8, 16}, .imm = 3, .flags = always, .op_context = context}),
         BY(rpma_send_with_imm(conn, mr, 8, 16, always, 3, context))},
        // 0 is immediate data, and an empty span is no list although it is not at nullptr.
        {BY(all.conn.write_with_imm(all.remote, 8, all.mr, 16, 24, always, 0, context)),
         posts(rpma::write{.remote = all.remote, .remote_offset = 8, .local = {all.mr, 16, 24},
                           .sges = std::span(two, 0), .imm = 0, .flags = always, .op_context = context}),
         BY(rpma_write_with_imm(conn, remote, 8, mr, 16, 24, always, 0, context))},
        {BY(all.conn.send_with_imm(all.mr, 8, 16, always, 0, context)),
         posts(rpma::send{.local = {all.mr, 8, 16}, .sges = std::span(two, 0), .imm = 0,
                          .flags = always, .op_context = context}),
         BY(rpma_send_with_imm(conn, mr, 8, 16, always, 0, context))},
        {BY(all.conn.read(all.mr, 8, all.remote, 16, 24, always, context)),
         posts(rpma::read{.remote = all.remote, .remote_offset = 16, .local = {all.mr, 8, 24},
                          .sges = std::span(two, 0), .flags = always, .op_context = context}),
         BY(rpma_read(conn, mr, 8, remote, 16, 24, always, context))},
        {BY(all.conn.post({&work, 1})), {}, BY(rpma_post(conn, &work, 1, nullptr))},
        {{}, posts(rpma::write{.remote = all.remote, .remote_offset = 8, .sges = two,
                               .flags = always, .op_context = context}),
         posts_in_c({.type = RPMA_WORK_WRITE, .sgl = two, .nsge = 2})},
        {{}, posts(rpma::fetch_add{.remote = all.remote, .remote_offset = 8, .local = {all.mr, 16, 8},
                                   .value = 5, .flags = always, .op_context = context}),
         posts_in_c({.type = RPMA_WORK_FETCH_ADD, .local = {mr, 16, 8}, .value = 5})},
        {{}, posts(rpma::compare_swap{.remote = all.remote, .remote_offset = 8, .local = {all.mr, 16, 8},
                                      .compare = 6, .value = 5, .flags = always, .op_context = context}),
         posts_in_c({.type = RPMA_WORK_COMPARE_SWAP, .local = {mr, 16, 8}, .value = 5, .compare = 6})},
    };
    // clang-format on
    for (const auto &operation : operations)
        for (const auto &call : {operation.ours, operation.named}) {
            if (!call)
                continue;
            fake_forget();
            rpma::check(call());
            assert_int_equal(fake_posted_count(), 1);
            fake_post ours = *fake_posted(0);
            fake_forget();
            assert_int_equal(operation.theirs(), 0);
            if (ours.inlined_bytes != 0) // copied from different addresses
                ours.sge.addr = fake_posted(0)->sge.addr;
            assert_memory_equal(&ours, fake_posted(0), sizeof(ours));
            assert_int_equal(ours.wr_id, reinterpret_cast<uintptr_t>(context));
        }
}

TEST_THAT(receives_equal_those_of_c) {
    objects all;
    const rpma_sge unused[] = {{all.mr, 0, 8}};
    const rpma_receive both[] = {
        rpma::recv{.local = {.mr = all.mr, .offset = 8, .len = 16},
                   .sges = std::span(unused, 0), // no list
                   .op_context = &memory[1]},
        rpma::recv{.local = {.mr = all.mr, .offset = 24, .len = 32}, .op_context = &memory[2]}};
    uint32_t posted = 0;
    for (const auto &one : std::initializer_list<std::function<rpma::status()>>{
             [&] { return all.conn.recv(all.mr, 8, 16, &memory[1]); },
             [&] { return all.req.recv(all.mr, 8, 16, &memory[1]); },
             [&] { return all.srq.recv(all.mr, 8, 16, &memory[1]); },
             [&] { return all.conn.recv_many(both, &posted); },
             [&] { return all.req.recv_many(both, &posted); },
             [&] { return all.srq.recv_many(both, &posted); }}) {
        fake_forget();
        posted = 1;
        rpma::check(one());
        assert_int_equal(fake_received_count(), posted);
        for (unsigned i = 0; i < posted; i++) {
            const fake_receive *got = fake_received(i);
            assert_int_equal(got->wr_id, reinterpret_cast<uintptr_t>(both[i].op_context));
            assert_int_equal(got->sge.addr,
                             reinterpret_cast<uintptr_t>(&memory[both[i].local.offset]));
            assert_int_equal(got->sge.length, both[i].local.len);
        }
    }
}

TEST_THAT(spans_are_posted_whole) {
    objects all;
    std::vector<rpma_work> works(3, {.type = RPMA_WORK_WRITE,
                                     .remote = all.remote,
                                     .local = {.mr = all.mr, .len = 8},
                                     .flags = RPMA_F_COMPLETION_ALWAYS});
    uint32_t posted = 0;
    fake_forget();
    rpma::check(all.conn.post(works, &posted));
    assert_int_equal(posted, 3);
    assert_int_equal(fake_posted_count(), 3);
    rpma::check(all.conn.post({works[0], works[1]}, &posted));
    assert_int_equal(posted, 2);
    works[1].reserved0 = 1;
    assert_true(all.conn.post(works, &posted) == rpma::status::inval);
    assert_int_equal(posted, 1);
}

TEST_THAT(batch_keeps_its_operations) {
    objects all;
    rpma_work work = {.type = RPMA_WORK_SEND,
                      .local = {.mr = all.mr, .len = 8},
                      .flags = RPMA_F_COMPLETION_ALWAYS};
    rpma::check(all.batch.add(work));
    rpma::check(all.batch.add(work));
    assert_int_equal(all.batch.size(), 2);
    assert_int_equal(all.batch.room(), 2);
    work.local.len = 16;
    rpma::check(all.batch.set(1, work));
    uint32_t posted = 0;
    fake_forget();
    rpma::check(all.batch.post(&posted));
    assert_int_equal(posted, 2);
    assert_int_equal(fake_posted(0)->sge.length, 8);
    assert_int_equal(fake_posted(1)->sge.length, 16);
    rpma::check(all.batch.reset());
    assert_int_equal(all.batch.size(), 0);
}

TEST_THAT(completions_fill_the_span) {
    objects all;
    rpma::cq_ref cq = all.conn.get_cq();
    std::array<ibv_wc, 3> room{};
    assert_true(cq.get_wc(room).status() == rpma::status::no_completion);
    assert_true(cq.get_wc(room).empty());
    rpma::check(all.conn.send(all.mr, 0, 8, RPMA_F_COMPLETION_ALWAYS, &memory[5]));
    rpma::check(all.conn.send(all.mr, 0, 8, RPMA_F_COMPLETION_ALWAYS, &memory[6]));
    rpma::check(all.conn.send(all.mr, 0, 8, RPMA_F_COMPLETION_ALWAYS, &memory[7]));
    ibv_cq *const queue = fake_qp(all.conn.get_qp_num())->send_cq;
    for (const std::byte *context : {&memory[5], &memory[6], &memory[7]}) {
        const ibv_wc wc = {.wr_id = reinterpret_cast<uintptr_t>(context)};
        fake_complete(queue, &wc);
    }
    rpma::check(cq.wait());
    const rpma::completions taken = cq.get_wc(std::span(room).first(2));
    rpma::check(taken.status());
    assert_int_equal(taken.size(), 2);
    assert_ptr_equal(taken.data(), room.data());
    assert_int_equal(taken[1].wr_id, reinterpret_cast<uintptr_t>(&memory[6]));
    ibv_wc wc;
    rpma::check(cq.get_wc(wc));
    assert_int_equal(wc.wr_id, reinterpret_cast<uintptr_t>(&memory[7]));
}

TEST_THAT(shared_channel_reports_the_queue) {
    rpma::peer peer(fake_context(0));
    rpma::conn_cfg cfg;
    cfg.set_compl_channel(true).set_rcq_size(10);
    rpma::conn conn = rpma::conn_req(peer, FIXTURE_ADDRESS, FIXTURE_PORT, cfg).connect();
    assert_true(conn.get_cq().wait() == rpma::status::shared_channel);
    const ibv_wc wc = {.wr_id = 1};
    fake_complete(fake_qp(conn.get_qp_num())->recv_cq, &wc);
    rpma::cq_ref ready;
    bool is_rcq = false;
    rpma::check(conn.wait(ready, &is_rcq));
    assert_true(is_rcq);
    assert_ptr_equal(ready.get(), conn.get_rcq()->get());
    assert_true(conn.get_compl_fd() >= 0);
}

// ---- connecting --------------------------------------------------------------------------

// The C functions would use the text up to its first '\0' only.
TEST_THAT(address_with_a_null_character_is_rejected) {
    using namespace std::string_view_literals;
    rpma::peer peer(fake_context(0));
    rpma::conn_cfg cfg;
    for (const auto &call : std::initializer_list<std::function<void()>>{
             [&] { rpma::conn_req(peer, FIXTURE_ADDRESS "\0.1"sv, FIXTURE_PORT); },
             [&] { rpma::conn_req(peer, FIXTURE_ADDRESS, FIXTURE_PORT "\0"sv); },
             [&] { (void)rpma::conn_req::start(peer, FIXTURE_ADDRESS "\0"sv, FIXTURE_PORT); },
             [&] { rpma::ep(peer, FIXTURE_ADDRESS "\0"sv, FIXTURE_PORT); },
             [&] { rpma::ep(peer, FIXTURE_ADDRESS, FIXTURE_PORT "\0"sv); },
             [&] { cfg.set_source_addr("192.168.0.2\0"sv); },
             [&] { rpma::get_ibv_context("\0"sv, RPMA_UTIL_IBV_CONTEXT_LOCAL); }})
        assert_int_equal(caught(call).code().value(), RPMA_E_INVAL);
    // A part of a longer text has no terminating '\0'.
    const std::string both = FIXTURE_ADDRESS "/" FIXTURE_PORT;
    const std::size_t slash = both.find('/');
    rpma::ep(peer, std::string_view(both).substr(0, slash),
             std::string_view(both).substr(slash + 1));
}

TEST_THAT(missing_request_or_event_is_no_error) {
    objects all;
    nonblocking(all.ep.get_fd());
    nonblocking(all.conn.get_event_fd());
    assert_false(all.ep.next_conn_req().has_value());
    assert_false(all.conn.next_event().has_value());
    for (const int fd : {all.ep.get_fd(), all.conn.get_event_fd()})
        fake_cm_event(fd, RDMA_CM_EVENT_ADDR_CHANGE, nullptr, 0);
    assert_false(all.ep.next_conn_req().has_value());
    assert_false(all.conn.next_event().has_value());
    fake_cm_event(all.conn.get_event_fd(), RDMA_CM_EVENT_DISCONNECTED, nullptr, 0);
    all.conn.disconnect();
    assert_true(all.conn.next_event() == RPMA_CONN_CLOSED);
    fake_fail("rdma_get_cm_event", 1, EIO);
    assert_int_equal(caught([&] { (void)all.conn.next_event(); }).provider_error(), EIO);
}

// A request is consumed even if it cannot be connected: the owner must not delete it again.
TEST_THAT(connecting_consumes_the_request) {
    rpma::peer peer(fake_context(0));
    rpma::conn_req req(peer, FIXTURE_ADDRESS, FIXTURE_PORT);
    fake_fail("rdma_connect", 1, ETIMEDOUT);
    assert_int_equal(caught([&] { (void)std::move(req).connect(); }).provider_error(),
                     ETIMEDOUT);
    assert_null(req.get());
}

TEST_THAT(both_sides_see_the_private_data) {
    const std::array<std::byte, 3> data = {std::byte{1}, std::byte{2}, std::byte{3}};
    rpma::peer peer(fake_context(0));
    rpma::ep ep(peer, FIXTURE_ADDRESS, FIXTURE_PORT);
    fake_cm_event(ep.get_fd(), RDMA_CM_EVENT_CONNECT_REQUEST, data.data(), data.size());
    rpma::conn_req req = ep.next_conn_req().value();
    assert_true(req.get_private_data().size() >= data.size());
    assert_memory_equal(req.get_private_data().data(), data.data(), data.size());
    assert_int_equal(req.get_peer_addr().ss_family, AF_INET);
    const sockaddr_storage listening = ep.get_addr(), local = req.get_local_addr();
    assert_memory_equal(&local, &listening, sizeof(local));
    rpma::conn conn = std::move(req).connect(data);
    const sockaddr_storage kept = conn.get_local_addr();
    assert_memory_equal(&kept, &local, sizeof(local));
    assert_int_equal(conn.get_peer_addr().ss_family, AF_INET);
    const fake_call *accepted = fake_last("rdma_accept");
    assert_int_equal(accepted->connect.param.private_data_len, data.size());
    assert_memory_equal(accepted->connect.data, data.data(), data.size());
    assert_memory_equal(conn.get_private_data().data(), data.data(), data.size());
}

// Private data that is too long consumes the request, like any other failure.
TEST_THAT(connect_and_reject_consume_the_request_when_they_throw) {
    rpma::peer peer(fake_context(0));
    const std::array<std::byte, 256> much{};
    rpma::conn_req outgoing(peer, FIXTURE_ADDRESS, FIXTURE_PORT);
    assert_int_equal(caught([&] { (void)std::move(outgoing).connect(much); }).code().value(),
                     RPMA_E_INVAL);
    assert_null(outgoing.get());
    rpma::ep ep(peer, FIXTURE_ADDRESS, FIXTURE_PORT);
    for (const bool accepts : {true, false}) {
        fake_cm_event(ep.get_fd(), RDMA_CM_EVENT_CONNECT_REQUEST, nullptr, 0);
        rpma::conn_req incoming = ep.next_conn_req().value();
        assert_int_equal(caught([&] {
                             if (accepts)
                                 (void)std::move(incoming).connect(much);
                             else
                                 std::move(incoming).reject(much);
                         })
                             .code()
                             .value(),
                         RPMA_E_INVAL);
        assert_null(incoming.get());
        assert_int_equal(fake_count("rdma_reject"), accepts ? 1 : 2);
    }
    rpma::conn_req other(peer, FIXTURE_ADDRESS, FIXTURE_PORT);
    assert_int_equal(caught([&] { std::move(other).reject(); }).code().value(), RPMA_E_INVAL);
    assert_null(other.get());
}

TEST_THAT(packed_data_is_unpacked) {
    rpma::peer peer(fake_context(0));
    rpma::mr_local one(peer, memory.data(), 64, RPMA_MR_USAGE_WRITE_DST);
    rpma::mr_local two(peer, memory.data(), 128, RPMA_MR_USAGE_READ_SRC);
    rpma::peer_cfg pcfg;
    const std::array<std::byte, 2> bytes = {std::byte{8}, std::byte{9}};
    const rpma::packed data({one, two}, pcfg.set_direct_write_to_pmem(true), bytes);
    const rpma::received got = rpma::unpack(data);
    assert_int_equal(got.regions.size(), 2);
    assert_int_equal(got.regions[0].get_size(), 64);
    assert_int_equal(got.regions[1].get_size(), 128);
    assert_int_equal(got.regions[1].get_key().addr, reinterpret_cast<uintptr_t>(memory.data()));
    assert_true(got.pcfg->get_direct_write_to_pmem());
    assert_true(std::ranges::equal(got.bytes, bytes));
    // No configuration, no bytes, and regions chosen at run time.
    const std::vector<const rpma_mr_local *> chosen = {two};
    const rpma::packed less(chosen);
    const rpma::received little = rpma::unpack(less);
    assert_int_equal(little.regions.size(), 1);
    assert_false(little.pcfg.has_value());
    assert_true(little.bytes.empty());
    assert_int_equal(caught([&] { (void)rpma::unpack(bytes); }).code().value(), RPMA_E_INVAL);
    // A size above 32 bits is not truncated.
    const std::span<const std::byte> huge(bytes.data(), (uint64_t{1} << 32) + 1);
    assert_int_equal(caught([&] { (void)rpma::packed({one}, nullptr, huge); }).code().value(),
                     RPMA_E_INVAL);
}

// The steps of a connection, on both sides: no call blocks, and would-block results are not
// errors.
TEST_THAT(connection_is_established_in_steps) {
    rpma::peer peer(fake_context(0));
    rpma::conn_req req = rpma::conn_req::start(peer, FIXTURE_ADDRESS, FIXTURE_PORT);
    const int fd = req.get_event_fd();
    assert_int_equal(caught([&] { req.setup(); }).code().value(), RPMA_E_INVAL);
    while (!req.resolve()) {
    }
    req.setup(rpma::conn_cfg().set_rcq_size(4));
    rpma::conn conn = std::move(req).connect();
    assert_true(conn.get_rcq().has_value());
    assert_null(req.get());
    assert_int_equal(conn.get_event_fd(), fd);
    // A new endpoint, whose first request is rejected with a reason.
    const std::array<std::byte, 2> why = {std::byte{7}, std::byte{8}};
    rpma::ep ep(peer, FIXTURE_ADDRESS, FIXTURE_PORT);
    nonblocking(ep.get_fd());
    assert_false(ep.next_incoming().has_value());
    fake_cm_event(ep.get_fd(), RDMA_CM_EVENT_CONNECT_REQUEST, why.data(), 1);
    rpma::conn_req incoming = ep.next_incoming().value();
    assert_true(incoming.resolve());
    assert_int_equal(incoming.get_private_data()[0], 7);
    std::move(incoming).reject(why);
    assert_null(incoming.get());
    const fake_call *rejected = fake_last("rdma_reject");
    assert_int_equal(rejected->connect.param.private_data_len, why.size());
    assert_memory_equal(rejected->connect.data, why.data(), why.size());
}

TEST_THAT(events_of_a_device_and_a_queue_are_taken) {
    objects all;
    nonblocking(all.peer.get_event_fd());
    assert_false(all.peer.next_event().has_value());
    all.cq.set_moderation(4, 20);
    all.srq.set_limit(3);
    nonblocking(all.cq.get_fd());
    assert_true(all.cq.take_event() == rpma::status::no_completion);
    rpma::check(all.cq.arm(false));
    assert_int_equal(fake_last("ibv_modify_cq")->modify_cq.moderate.cq_count, 4);
    assert_int_equal(fake_last("ibv_modify_cq")->modify_cq.moderate.cq_period, 20);
    assert_int_equal(fake_count("ibv_modify_srq"), 1);
    // Armed for solicited completions only, the queue reports no other one.
    const ibv_wc wc = {.wr_id = 1};
    fake_complete(all.cq.get_ibv_cq(), &wc);
    rpma::check(all.cq.take_event());
    rpma::check(all.cq.arm(true));
    fake_complete(all.cq.get_ibv_cq(), &wc);
    assert_true(all.cq.take_event() == rpma::status::no_completion);
}
