// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// header_errors.cc -- errors of librpma.hpp carry the line of the log

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "header.hh"

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
