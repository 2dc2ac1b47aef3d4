// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// header.cc -- librpma.hpp over the fakes of the unit tests: owners release once, errors carry
// the line of the log, and the data path makes the same provider calls as the C functions

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <librpma.hpp>
#include <memory>
#include <new>
#include <string>
#include <thread>

extern "C" {
#include "error_codes.h"
#include "fixture.h"
}

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

// ---- objects -----------------------------------------------------------------------------

alignas(8) static std::array<std::byte, FIXTURE_MEMORY_SIZE> memory; // for atomics

static std::array<std::byte, 21> descriptor_of_remote() {
    std::array<std::byte, 21> bytes;
    fixture_descriptor(reinterpret_cast<unsigned char *>(bytes.data()), FIXTURE_REMOTE_ADDR,
                       FIXTURE_REMOTE_SIZE, FIXTURE_REMOTE_RKEY, FIXTURE_EVERY_USAGE);
    return bytes;
}

static void nonblocking(int fd) {
    (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

// One of each owner, not connected.
struct objects {
    rpma::peer peer{fake_context(0)};
    rpma::mr_local mr{peer, memory.data(), memory.size(), FIXTURE_EVERY_USAGE};
    rpma::mr_remote remote{descriptor_of_remote()};
    rpma::peer_cfg pcfg;
    rpma::cq_cfg cq_cfg;
    rpma::cq cq{peer, cq_cfg};
    rpma::srq_cfg srq_cfg;
    rpma::srq srq{peer, srq_cfg};
    rpma::ep_cfg ep_cfg;
    rpma::ep ep{peer, FIXTURE_ADDRESS, FIXTURE_PORT, ep_cfg};
    rpma::conn_cfg cfg;
    rpma::conn_req req{peer, FIXTURE_ADDRESS, FIXTURE_PORT, cfg};
    rpma::conn conn =
        rpma::conn_req(peer, FIXTURE_ADDRESS, FIXTURE_PORT, rpma::conn_cfg().set_max_sge(2))
            .connect();
    rpma::batch batch{conn, 4};

    objects() {
        fake_cm_event(conn.get_event_fd(), RDMA_CM_EVENT_ESTABLISHED, nullptr, 0);
        if (conn.next_event() != RPMA_CONN_ESTABLISHED)
            std::abort();
        pcfg.set_direct_write_to_pmem(true);
        conn.apply_remote_peer_cfg(pcfg);
    }
};

static rpma::error caught(const std::function<void()> &call) {
    try {
        call();
    } catch (const rpma::error &error) {
        return error;
    }
    fail_msg("nothing was thrown");
    std::abort();
}

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

// ---- errors ------------------------------------------------------------------------------

TEST_THAT(error_without_log_line_names_its_function_and_code) {
    rpma::peer peer(fake_context(0));
    (void)rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
    const rpma::error error =
        caught([&] { rpma::mr_local(peer, nullptr, 64, RPMA_MR_USAGE_SEND); });
    assert_int_equal(error.code().value(), RPMA_E_INVAL);
    assert_string_equal(error.what(), "rpma_mr_reg: Invalid argument");
    assert_int_equal(error.provider_error(), 0);
}

// mlx5's ibv_poll_cq() fails without an error number: rdma-core, providers/mlx5/cq.c,
// poll_cq().
TEST_THAT(failed_poll_reports_no_error_number_of_an_earlier_call) {
    rpma::peer peer(fake_context(0));
    rpma::cq cq(peer);
    ibv_wc wc;
    for (const bool many : {false, true}) {
        errno = ENOENT;
        fake_fail("ibv_reg_mr", 1, EPERM);
        (void)caught([&] { rpma::mr_local(peer, memory, RPMA_MR_USAGE_SEND); });
        fake_poll_returns(-2);
        const rpma::error error = caught(
            [&] { rpma::check(many ? cq.get_wc(std::span(&wc, 1)).status() : cq.get_wc(wc)); });
        assert_non_null(std::strstr(error.what(), "ibv_poll_cq("));
        assert_int_equal(error.code().value(), RPMA_E_PROVIDER);
        assert_int_equal(error.provider_error(), 0);
    }
}

// An error that the library does not log must not contain the line of an earlier failure.
TEST_THAT(shared_channel_reports_no_line_of_an_earlier_call) {
    rpma::peer peer(fake_context(0));
    rpma::conn_cfg cfg;
    rpma::conn conn =
        rpma::conn_req(peer, FIXTURE_ADDRESS, FIXTURE_PORT, cfg.set_compl_channel(true))
            .connect();
    rpma::cq_ref cq = conn.get_cq();
    rpma::conn own = rpma::conn_req(peer, FIXTURE_ADDRESS, FIXTURE_PORT).connect();
    for (const bool shared : {true, false}) {
        (void)own.send(nullptr, 1, 1, 0); // fails; nothing reads its line
        const rpma::error error =
            caught([&] { rpma::check(shared ? cq.wait() : own.wait(cq)); });
        assert_int_equal(error.code().value(),
                         shared ? RPMA_E_SHARED_CHANNEL : RPMA_E_NOT_SHARED_CHNL);
        assert_string_equal(error.what(), rpma_err_2str(error.code().value()));
    }
}

TEST_THAT(error_contains_the_log_line) {
    rpma::peer peer(fake_context(0));
    logged_forget();
    fake_fail("ibv_reg_mr", 1, EPERM);
    const rpma::error error = caught([&] { rpma::mr_local(peer, memory, RPMA_MR_USAGE_SEND); });
    assert_int_equal(error.provider_error(), EPERM);
    assert_non_null(std::strstr(error.what(), "failed: Operation not permitted (1)"));
    // The log function of the program still gets each line unchanged.
    assert_string_equal(error.what(), logged_line(RPMA_LOG_LEVEL_ERROR, 0)->message);
}

TEST_THAT(copied_error_has_the_same_text) {
    const auto error = std::make_unique<rpma::error>(caught([&] {
        ibv_context *none = nullptr;
        (void)rpma::peer(none);
    }));
    auto copy = std::make_unique<rpma::error>(*error);
    const std::string text = error->what();
    assert_true(text.starts_with("ibv_ctx"));
    *copy = rpma::error(rpma::status::again, 0, "other");
    assert_string_equal(copy->what(), "other");
    assert_string_equal(error->what(), text.c_str());
}

// Each thread has its own last failure, so its errors never contain the line of another
// thread.
TEST_THAT(errors_of_threads_are_separate) {
    rpma::peer peer(fake_context(0));
    fake_quiet(true);
    const auto fail_often = [&](std::size_t size, int usage, const char *expected) {
        bool all = true;
        for (int i = 0; i < 1000; i++)
            try {
                rpma::mr_local(peer, memory.data(), size, usage);
                all = false;
            } catch (const rpma::error &error) {
                all = all && std::strstr(error.what(), expected) != nullptr;
            }
        return all;
    };
    bool other = false;
    std::thread thread([&] { other = fail_often(64, 0, "usage is 0"); });
    const bool mine = fail_often(0, RPMA_MR_USAGE_SEND, "size is 0");
    thread.join();
    fake_quiet(false);
    assert_true(mine && other);
}

TEST_THAT(check_throws_the_code_of_the_data_path) {
    objects all;
    rpma::check(all.conn.write(all.remote, 0, all.mr, 0, 8, RPMA_F_COMPLETION_ALWAYS));
    fake_fail("ibv_post_send", 1, EIO);
    const rpma::error failed = caught([&] {
        rpma::check(all.conn.write(all.remote, 0, all.mr, 0, 8, RPMA_F_COMPLETION_ALWAYS));
    });
    assert_int_equal(failed.code().value(), RPMA_E_PROVIDER);
    assert_int_equal(failed.provider_error(), EIO);
    assert_non_null(std::strstr(failed.what(), "ibv_post_send"));
    // The error of an empty queue does not contain an unrelated line.
    fake_fail("ibv_post_send", 1, EIO);
    assert_true(all.conn.send(all.mr, 0, 8, RPMA_F_COMPLETION_ALWAYS) ==
                rpma::status::provider);
    ibv_wc wc;
    const rpma::error empty = caught([&] { rpma::check(all.cq.get_wc(wc)); });
    assert_string_equal(empty.what(), "No next completion available");
    assert_true(empty.code() == std::errc::resource_unavailable_try_again);
    // With the log off, the error has the number of its own failure, and no earlier message.
    (void)rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
    fake_fail("ibv_post_send", 1, EPERM);
    const rpma::error unlogged =
        caught([&] { rpma::check(all.conn.send(all.mr, 0, 8, RPMA_F_COMPLETION_ALWAYS)); });
    assert_int_equal(unlogged.provider_error(), EPERM);
    assert_string_equal(unlogged.what(), "Provider error occurred");
}

TEST_THAT(each_code_has_its_std_errc) {
    const std::error_code code = rpma::status::inval;
    assert_true(code == std::errc::invalid_argument && code == rpma::status::inval);
    assert_string_equal(code.category().name(), "librpma");
    assert_string_equal(code.message().c_str(), rpma_err_2str(RPMA_E_INVAL));
    assert_true(std::error_code(rpma::status::nomem) == std::errc::not_enough_memory);
    assert_true(std::error_code(rpma::status::nosupp) == std::errc::not_supported);
    assert_true(std::error_code(rpma::status::no_event) ==
                std::errc::resource_unavailable_try_again);
    assert_true(std::error_code(rpma::status::again) ==
                std::errc::resource_unavailable_try_again);
    assert_false(std::error_code(rpma::status::provider) == std::errc::io_error);
}

// A successful call does not change errno.
TEST_THAT(success_preserves_errno) {
    errno = EXDEV;
    const rpma::conn_cfg cfg;
    assert_int_equal(cfg.get_sq_size(), 10);
    assert_int_equal(errno, EXDEV);
}

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
