// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// header.cc -- librpma.hpp over the fakes of the unit tests: owners release once, and getters
// return what was set

#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <string>

#include "header.hh"

// ---- checked by the compiler -------------------------------------------------------------

template <class Owner> constexpr bool is_move_only() {
    return std::is_nothrow_move_constructible_v<Owner> &&
           std::is_nothrow_move_assignable_v<Owner> && std::is_nothrow_destructible_v<Owner> &&
           !std::is_copy_constructible_v<Owner> && !std::is_copy_assignable_v<Owner>;
}

// An owner converts to its handle, a const owner only to a const handle, and a temporary owner
// not at all.
template <class Owner> constexpr bool has_owner_conversions() {
    using Handle = typename Owner::handle_type;
    return std::is_convertible_v<Owner &, Handle *> &&
           std::is_convertible_v<const Owner &, const Handle *> &&
           !std::is_convertible_v<const Owner &, Handle *> &&
           !std::is_convertible_v<Owner, Handle *> &&
           !std::is_convertible_v<Owner, const Handle *> &&
           !std::is_convertible_v<Handle *, Owner> &&
           !std::is_constructible_v<Owner, std::nullptr_t> && sizeof(Owner) == sizeof(Handle *);
}

template <class... Owners> constexpr bool are_owners() {
    return (... && (is_move_only<Owners>() && has_owner_conversions<Owners>()));
}

static_assert(are_owners<rpma::peer, rpma::peer_cfg, rpma::mr_local, rpma::mr_remote, rpma::srq,
                         rpma::srq_cfg, rpma::cq, rpma::cq_cfg, rpma::conn_cfg, rpma::conn_req,
                         rpma::ep, rpma::ep_cfg, rpma::conn, rpma::batch>());
static_assert(std::is_nothrow_copy_constructible_v<rpma::error>);
static_assert(!std::is_constructible_v<rpma::cq_ref, std::nullptr_t>);
// A view of an owner cannot be taken from a temporary owner.
template <class Owner>
concept has_private_data = requires(Owner &&owner) {
    {
        std::forward<Owner>(owner).get_private_data()
        } -> std::same_as<std::span<const std::byte>>;
};
template <class Owner>
concept has_cq = requires(Owner &&owner) {
    std::forward<Owner>(owner).get_cq().get();
};
template <class Owner>
concept has_rcq = requires(Owner &&owner) {
    std::forward<Owner>(owner).get_rcq()->get();
};
static_assert(has_private_data<rpma::conn &> && !has_private_data<rpma::conn>);
static_assert(has_private_data<rpma::conn_req &> && !has_private_data<rpma::conn_req>);
static_assert(has_cq<rpma::conn &> && !has_cq<rpma::conn>);
static_assert(has_rcq<rpma::conn &> && !has_rcq<rpma::conn>);
static_assert(has_rcq<rpma::srq &> && !has_rcq<rpma::srq>);
static_assert(rpma::detail::name_of<rpma_mr_reg>() == "rpma_mr_reg");
#define IS_FAILURE_AS_IN_C(code, text, is_a_failure) \
    static_assert(rpma::detail::is_failure(rpma::status{code}) == (is_a_failure));
RPMA_ERROR_CODES(IS_FAILURE_AS_IN_C)

// Functions that post, poll or wait cannot throw, and return a status.
template <class... Results> constexpr bool are_statuses() {
    return (... && std::is_same_v<Results, rpma::status>);
}
#define ON_DATA_PATH(call) \
    static_assert(noexcept(call) && are_statuses<decltype(call)>(), #call)
[[maybe_unused]] constexpr auto data_path =
    [](rpma::conn &conn, rpma::conn_req &req, rpma::srq &srq, rpma::batch &batch, rpma::cq &cq,
       rpma::cq_ref &ref, rpma_mr_local *mr, rpma_mr_remote *remote) {
        std::array<rpma_work, 2> works;
        std::array<rpma_receive, 2> receives;
        std::array<ibv_wc, 2> room;
        constexpr std::array<char, 8> bytes{};
        ON_DATA_PATH(conn.read(mr, 0, remote, 0, 1, 0));
        ON_DATA_PATH(conn.write(remote, 0, mr, 0, 1, 0));
        ON_DATA_PATH(conn.write_with_imm(remote, 0, mr, 0, 1, 0, 0));
        ON_DATA_PATH(conn.atomic_write(remote, 0, bytes, 0));
        ON_DATA_PATH(conn.flush(remote, 0, 1, RPMA_FLUSH_TYPE_VISIBILITY, 0));
        ON_DATA_PATH(conn.send(mr, 0, 1, 0));
        ON_DATA_PATH(conn.send_with_imm(mr, 0, 1, 0, 0));
        ON_DATA_PATH(conn.recv(mr, 0, 1));
        ON_DATA_PATH(conn.recv_many(receives));
        ON_DATA_PATH(conn.post(works));
        ON_DATA_PATH(conn.post({works[0]}));
        ON_DATA_PATH(conn.wait(ref));
        ON_DATA_PATH(req.recv(mr, 0, 1));
        ON_DATA_PATH(req.recv_many(receives));
        ON_DATA_PATH(srq.recv(mr, 0, 1));
        ON_DATA_PATH(srq.recv_many(receives));
        ON_DATA_PATH(batch.add(works[0]));
        ON_DATA_PATH(batch.set(0, works[0]));
        ON_DATA_PATH(batch.post());
        ON_DATA_PATH(batch.reset());
        ON_DATA_PATH(cq.wait());
        ON_DATA_PATH(cq.get_wc(room[0]));
        static_assert(noexcept(cq.get_wc(room)));
        ON_DATA_PATH(ref.wait());
        ON_DATA_PATH(ref.take_event());
        ON_DATA_PATH(ref.arm(true));
    };

// ---- owners ------------------------------------------------------------------------------

TEST_THAT(every_owner_releases_its_object) {
    const objects all;
}

template <class Owner> static void moves(Owner &owner) {
    auto *const handle = owner.get();
    assert_non_null(handle);
    Owner moved(std::move(owner));
    assert_null(owner.get());
    assert_ptr_equal(moved.get(), handle);
    owner = std::move(moved);
    assert_null(moved.get());
    assert_ptr_equal(owner.get(), handle);
    Owner &itself = owner;
    owner = std::move(itself);
    assert_ptr_equal(owner.get(), handle);
    Owner adopted(owner.release());
    assert_null(owner.get());
    owner = std::move(adopted);
    assert_ptr_equal(owner.get(), handle);
}

TEST_THAT(every_owner_is_moved_and_released) {
    objects all;
    moves(all.peer);
    moves(all.mr);
    moves(all.remote);
    moves(all.pcfg);
    moves(all.cq_cfg);
    moves(all.cq);
    moves(all.srq_cfg);
    moves(all.srq);
    moves(all.ep_cfg);
    moves(all.ep);
    moves(all.cfg);
    moves(all.req);
    moves(all.conn);
    moves(all.batch);
}

// An assignment deletes the previous object at once, and close() the assigned one.
template <class Make> static void assigns(const Make &make) {
    const std::string none = fake_leaks();
    auto owner = make();
    const std::string one = fake_leaks();
    assert_string_not_equal(one.c_str(), none.c_str());
    auto other = make();
    auto *const handle = other.get();
    auto &result = owner = std::move(other);
    assert_ptr_equal(&result, &owner);
    assert_string_equal(fake_leaks(), one.c_str());
    assert_ptr_equal(owner.get(), handle);
    assert_null(other.get());
    owner = std::move(other); // of none
    assert_null(owner.get());
    assert_string_equal(fake_leaks(), none.c_str());
    owner = make();
    owner.close();
    assert_null(owner.get());
    assert_string_equal(fake_leaks(), none.c_str());
    owner.close();
}

TEST_THAT(assignment_releases_the_previous_object) {
    objects all;
    assigns([] { return rpma::peer(fake_context(0)); });
    assigns([&] { return rpma::mr_local(all.peer, memory, RPMA_MR_USAGE_SEND); });
    assigns([] { return rpma::mr_remote(descriptor_of_remote()); });
    assigns([] { return rpma::peer_cfg(); });
    assigns([] { return rpma::cq_cfg(); });
    assigns([&] { return rpma::cq(all.peer); });
    assigns([] { return rpma::srq_cfg(); });
    assigns([&] { return rpma::srq(all.peer); });
    assigns([] { return rpma::ep_cfg(); });
    assigns([&] { return rpma::ep(all.peer, FIXTURE_ADDRESS, FIXTURE_PORT); });
    assigns([] { return rpma::conn_cfg(); });
    assigns([&] { return rpma::conn_req(all.peer, FIXTURE_ADDRESS, FIXTURE_PORT); });
    assigns([&] { return rpma::conn_req(all.peer, FIXTURE_ADDRESS, FIXTURE_PORT).connect(); });
    assigns([&] { return rpma::batch(all.conn, 4); });
}

TEST_THAT(refused_close_throws_and_keeps_the_handle) {
    rpma::peer peer(fake_context(0));
    rpma::mr_local mr(peer, memory.data(), 64, RPMA_MR_USAGE_SEND);
    fake_fail("ibv_dereg_mr", 1, EBUSY);
    const rpma::error error = caught([&] { mr.close(); });
    assert_int_equal(error.code().value(), RPMA_E_PROVIDER);
    assert_int_equal(error.provider_error(), EBUSY);
    assert_non_null(mr.get());
    assert_int_equal(mr.get_size(), 64);
}

// Makes the 1st, 2nd, 3rd … call of a scenario fail, and expects that all objects are
// released.
static void fail_each_call(const std::function<void()> &scenario) {
    unsigned nth = 0;
    do {
        fake_reset();
        fake_fail(nullptr, ++nth, ENOMEM);
        try {
            scenario();
            assert_int_equal(fake_faults_fired(), 0);
        } catch (const rpma::error &error) {
            assert_int_equal(fake_faults_fired(), 1);
            assert_true(error.code().value() == RPMA_E_PROVIDER ||
                        error.code().value() == RPMA_E_NOMEM);
        }
        fake_faults_off();
        unit_nothing_left(fake_first_fault());
    } while (nth == 1 || fake_faults_fired() != 0);
    assert_true(nth > 3);
}

TEST_THAT(failure_releases_everything) {
    fail_each_call([] {
        rpma::peer peer(fake_context(0));
        rpma::mr_local mr(peer, memory.data(), memory.size(), FIXTURE_EVERY_USAGE);
        rpma::mr_remote remote(descriptor_of_remote());
        rpma::peer_cfg pcfg;
        const rpma::packed data({mr, mr}, pcfg);
        rpma::cq_cfg cq_cfg;
        rpma::cq cq(peer, cq_cfg.set_size(7));
        rpma::conn_cfg cfg;
        rpma::conn conn =
            rpma::conn_req(peer, FIXTURE_ADDRESS, FIXTURE_PORT, cfg.set_cq(cq)).connect(data);
        rpma::batch batch(conn, 4);
        const rpma::received got = rpma::unpack(data);
        fake_faults_off(); // a destructor does not throw
    });
}

// ---- values ------------------------------------------------------------------------------

TEST_THAT(part_of_a_string_is_an_address) {
    rpma::peer peer(fake_context(0));
    constexpr std::string_view longer = FIXTURE_ADDRESS "0" FIXTURE_PORT "0";
    constexpr std::size_t end = std::string_view(FIXTURE_ADDRESS).size();
    const rpma::conn_req req(peer, longer.substr(0, end), longer.substr(end + 1, 4));
    assert_string_equal(fake_last("getaddrinfo")->getaddrinfo.node, FIXTURE_ADDRESS);
    assert_string_equal(fake_last("getaddrinfo")->getaddrinfo.service, FIXTURE_PORT);
}

TEST_THAT(configurations_keep_set_values) {
    rpma::peer peer(fake_context(0));
    rpma::srq srq(peer);
    rpma::cq cq(peer), rcq(peer);
    rpma::conn_cfg cfg;
    // Each setter returns the configuration.
#define KEEPS(cfg, setting, value) \
    assert_true((cfg).set_##setting(value).get_##setting() == (value))
    KEEPS(cfg, timeout, 1);
    KEEPS(cfg, cq_size, 2U);
    KEEPS(cfg, rcq_size, 3U);
    KEEPS(cfg, sq_size, 4U);
    KEEPS(cfg, rq_size, 5U);
    KEEPS(cfg, max_sge, 6U);
    KEEPS(cfg, ack_timeout, 7);
    KEEPS(cfg, retry_count, 1);
    KEEPS(cfg, rnr_retry_count, 2);
    KEEPS(cfg, rnr_timer, 3);
    KEEPS(cfg, source_port, 7300U);
    KEEPS(cfg, tos, 8);
    KEEPS(cfg, flush_mode, RPMA_FLUSH_MODE_NATIVE);
    KEEPS(cfg, inline_size, 9U);
    KEEPS(cfg, compl_channel, true);
    cfg.set_srq(srq).set_cq(cq).set_rcq(rcq);
    assert_ptr_equal(cfg.get_srq(), srq.get());
    assert_ptr_equal(cfg.get_cq()->get(), cq.get());
    assert_ptr_equal(cfg.get_rcq()->get(), rcq.get());
    assert_int_equal(caught([&] { cfg.set_retry_count(8); }).code().value(), RPMA_E_INVAL);

    cfg.set_source_addr("192.168.0.2");
    assert_int_equal(cfg.get_source_addr().ss_family, AF_INET);
    cfg.set_source_addr(std::nullopt);
    assert_int_equal(cfg.get_source_addr().ss_family, AF_UNSPEC);

    rpma::ep_cfg ep_cfg;
    KEEPS(ep_cfg, backlog, 9);
    KEEPS(ep_cfg, ipv6_only, true);
    rpma::srq_cfg srq_cfg;
    KEEPS(srq_cfg, rq_size, 1U);
    KEEPS(srq_cfg, rcq_size, 2U);
    KEEPS(srq_cfg, max_sge, 3U);
    rpma::cq_cfg cq_cfg;
    KEEPS(cq_cfg, size, 1U);
    KEEPS(cq_cfg, comp_vector, 2);

    rpma::peer_cfg pcfg;
    assert_false(pcfg.get_served().has_value());
    fake_profile()->has_native_flush = true;
    pcfg.set_served_by(peer).set_direct_write_to_pmem(true);
    assert_true(pcfg.get_served().has_value());
    const std::byte flush_only{SERVES | SERVES_FLUSH};
    const rpma::peer_cfg serves(std::span(&flush_only, 1));
    assert_true(serves.get_served()->flush && !serves.get_served()->atomic_write);
    const rpma::peer_cfg same(pcfg.get_descriptor());
    assert_true(same.get_direct_write_to_pmem() && same.get_served().has_value());
}

TEST_THAT(getters_return_the_properties_of_objects) {
    objects all;
    assert_ptr_equal(rpma::get_ibv_context(FIXTURE_ADDRESS, RPMA_UTIL_IBV_CONTEXT_REMOTE),
                     fake_context(0));
    fake_profile()->has_odp = true;
    assert_true(rpma::ibv_context_is_odp_capable(fake_context(0)));
    assert_ptr_equal(all.mr.get_ptr(), memory.data());
    assert_int_equal(all.mr.get_size(), memory.size());
    assert_ptr_equal(all.mr.get_ibv_mr()->addr, memory.data());
    assert_ptr_equal(all.mr.get_ibv_mr()->pd, all.peer.get_ibv_pd());
    all.mr.advise(16, 8, IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_FLAG_FLUSH);
    const fake_call *const advised = fake_last("ibv_advise_mr");
    assert_int_equal(advised->advise.flags, IBV_ADVISE_MR_FLAG_FLUSH);
    assert_int_equal(advised->advise.sge.addr, reinterpret_cast<uintptr_t>(&memory[16]));
    assert_int_equal(advised->advise.sge.length, 8);
    assert_int_equal(all.remote.get_size(), FIXTURE_REMOTE_SIZE);
    assert_int_equal(all.remote.get_flush_type(),
                     RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT);
    assert_int_equal(all.remote.get_key().addr, FIXTURE_REMOTE_ADDR);
    assert_int_equal(all.remote.get_key().rkey, FIXTURE_REMOTE_RKEY);
    const rpma::mr_remote again(all.mr.get_descriptor());
    assert_int_equal(again.get_size(), memory.size());
    assert_non_null(all.srq.get_rcq()->get());
    assert_false(all.conn.get_rcq().has_value() || all.cfg.get_cq().has_value());
    assert_ptr_equal(all.conn.get_ibv_qp(), fake_qp(all.conn.get_qp_num()));
    assert_ptr_equal(all.conn.get_cq().get_ibv_cq(), all.conn.get_ibv_qp()->send_cq);
    assert_int_equal(all.conn.get_flush_mode(), RPMA_FLUSH_MODE_EMULATED);
    assert_true(all.cq.get_fd() >= 0);
    assert_int_equal(caught([&] { (void)all.conn.get_compl_fd(); }).code().value(),
                     RPMA_E_NOT_SHARED_CHNL);
}
