// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// in_process_test.cc -- the functions of rdma-sim.h

#include "../../direct/rdma-sim.h"
#include "../../model/faults.hh"

#include <arpa/inet.h>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <rdma/rdma_cma.h>
#include <thread>
#include <unistd.h>

extern "C" {
#include <csetjmp>
#include <cstdarg>

#include <cmocka.h>
}

namespace {

using namespace sim;

constexpr uint64_t MS = 1'000'000;

void begin(const rdma_sim_options &options) {
    assert_int_equal(rdma_sim_start(&options), 0);
    assert_string_equal(rdma_sim_error(), "");
}

int end(void **) {
    (void)rdma_sim_end();
    return 0;
}

ibv_context *open_first() {
    int count = 0;
    ibv_device **const list = ibv_get_device_list(&count);
    assert_int_equal(count, 1);
    ibv_context *const context = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    assert_non_null(context);
    return context;
}

void each_error_has_its_code_and_a_line(void **) {
    const auto refuses = [](int error, int expected, const char *line) {
        assert_int_equal(error, expected);
        assert_string_equal(rdma_sim_error(), line);
    };
    const char *const none = "there is no fabric: call rdma_sim_start()";
    refuses(rdma_sim_end(), ENOENT, none);
    refuses(rdma_sim_use_host(1), ENOENT, none);
    refuses(rdma_sim_advance(1), ENOENT, none);
    refuses(rdma_sim_fault("cut host1"), ENOENT, none);
    const struct {
        rdma_sim_options options;
        int error;
        const char *line;
    } starts[] = {
        {{255, nullptr, 0, nullptr}, EINVAL, "at most 254 hosts"},
        {{2, "mlx9", 0, nullptr}, ENODEV, "there is no device 'mlx9'"},
        {{2, "", 0, nullptr}, ENODEV, "there is no device ''"},
        {{2, nullptr, 0, "weak"}, EINVAL, "there is no weakness 'weak'"},
        {{2, nullptr, 0, "fork,"}, EINVAL, "there is no weakness ''"},
        {{2, nullptr, 0, "fork,,fork"}, EINVAL, "there is no weakness ''"},
        {{2, "siw", 0, "fork,datagram-loss"},
         ENOTSUP,
         "the device siw does not have the weakness datagram-loss"},
    };
    for (const auto &each : starts)
        refuses(rdma_sim_start(&each.options), each.error, each.line);
    assert_int_equal(rdma_sim_start(nullptr), 0);
    refuses(rdma_sim_start(nullptr), EBUSY, "a fabric exists already");
    refuses(rdma_sim_use_host(0), ERANGE, "there is no host0, only 2 hosts");
    refuses(rdma_sim_use_host(3), ERANGE, "there is no host3, only 2 hosts");
    const struct {
        const char *fault;
        int error;
        const char *line;
    } faults[] = {
        {nullptr, EINVAL,
         "'': it begins with a time, such as 2s, with 'after' and a host, or with a call, such "
         "as host2:ibv_post_send:3"},
        {"cut host1 host1", EINVAL, "'cut host1 host1': the hosts must differ"},
        {"1s explode host1", EINVAL, "'1s explode host1': there is no action 'explode'"},
        {"cut host1 host3", ERANGE, "there is no host3, only 2 hosts"},
        {"host3:ibv_reg_mr:1 cut host1", ERANGE, "there is no host3, only 2 hosts"},
        {"1s poison host1", ENOTSUP,
         "'1s poison host1': the device rxe cannot have this fault"},
        {"after host1 cut host2", ENOTSUP,
         "'after host1 cut host2': only rdma-sim has this fault: it is one of programs"},
    };
    for (const auto &each : faults)
        refuses(rdma_sim_fault(each.fault), each.error, each.line);
    assert_int_equal(rdma_sim_advance(MS), 0);
    refuses(rdma_sim_advance(UINT64_MAX), ERANGE,
            "the time is limited to 2^64 - 1 nanoseconds");
    assert_int_equal(rdma_sim_end(), 0);
    assert_string_equal(rdma_sim_error(), "");
}

// Returns an action of the kind with host 2.
std::string action_of(const FaultKind &kind) {
    std::string text = kind.name + std::string(kind.max_hosts == 2 ? " host1 host2" : " host2");
    switch (kind.argument) {
    case FaultArgument::TIME:
        return text + " 5ms";
    case FaultArgument::EVENT:
        return text + " qp-fatal";
    case FaultArgument::CALL:
        return text + " ibv_reg_mr";
    default:
        return text;
    }
}

void each_fault_of_the_table_is_accepted_or_refused(void **) {
    for (size_t i = 0; i < sim_profile_count; i++) {
        const sim_profile &device = sim_profiles[i];
        begin({2, device.name, 0, nullptr});
        for (const FaultKind &kind : fault_kinds())
            for (const char *const when : {"", "5ms ", "host1:ibv_open_device:1 "}) {
                const std::string text = when + action_of(kind);
                const bool can_be =
                    !kind.needs_programs && is_possible(device, read_action(action_of(kind)));
                const int error = rdma_sim_fault(text.c_str());
                if (error != (can_be ? 0 : ENOTSUP))
                    fail_msg("%s: '%s' returns %d: %s", device.name, text.c_str(), error,
                             rdma_sim_error());
            }
        assert_int_equal(rdma_sim_advance(10 * MS), 0);
        assert_int_equal(rdma_sim_end(), 0);
    }
}

void fault_occurs_at_once_or_by_call_or_by_time(void **) {
    begin({2, "rxe", 0, nullptr});
    ibv_context *const context = open_first();
    ibv_pd *const pd = ibv_alloc_pd(context);
    char memory[8];
    assert_int_equal(rdma_sim_fault("host1:ibv_reg_mr:2 fail EAGAIN"), 0);
    ibv_mr *const mr = ibv_reg_mr(pd, memory, sizeof(memory), 0);
    assert_non_null(mr);
    assert_null(ibv_reg_mr(pd, memory, sizeof(memory), 0));
    assert_int_equal(errno, EAGAIN);
    const auto state = [&] {
        ibv_port_attr port;
        assert_int_equal(ibv_query_port(context, 1, &port), 0);
        return port.state;
    };
    assert_int_equal(rdma_sim_fault("5ms port-down host1 for 10ms"), 0);
    assert_int_equal(rdma_sim_advance(4 * MS), 0);
    assert_int_equal(state(), IBV_PORT_ACTIVE);
    assert_int_equal(rdma_sim_advance(MS), 0);
    assert_int_equal(state(), IBV_PORT_DOWN);
    assert_int_equal(rdma_sim_advance(10 * MS), 0);
    assert_int_equal(state(), IBV_PORT_ACTIVE);
    assert_int_equal(rdma_sim_fault("port-down host1"), 0);
    assert_int_equal(state(), IBV_PORT_DOWN);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    assert_int_equal(ibv_close_device(context), 0);
}

// Resolves the address of the other host, which uses the device of the thread's own one.
void resolve(unsigned host) {
    rdma_cm_id *id;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(7204);
    inet_pton(AF_INET, host == 1 ? "10.77.0.2" : "10.77.0.1", &address.sin_addr);
    assert_int_equal(rdma_sim_use_host(host), 0);
    assert_int_equal(rdma_create_id(nullptr, &id, nullptr, RDMA_PS_TCP), 0);
    assert_int_equal(
        rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr *>(&address), 2000), 0);
    sockaddr_in *const own = reinterpret_cast<sockaddr_in *>(rdma_get_local_addr(id));
    assert_int_equal(ntohl(own->sin_addr.s_addr) & 0xff, host);
    assert_int_equal(rdma_resolve_route(id, 2000), 0);
    ibv_qp_init_attr attr{};
    attr.qp_type = IBV_QPT_RC;
    attr.cap = {1, 1, 1, 1, 0};
    assert_int_equal(rdma_create_qp(id, nullptr, &attr), 0);
    rdma_destroy_qp(id);
    assert_int_equal(rdma_destroy_id(id), 0);
    int count = 0;
    rdma_free_devices(rdma_get_devices(&count));
    assert_int_equal(count, 1);
}

void hosts_of_many_fabrics_have_their_own_devices(void **) {
    for (int i = 0; i < 600; i++) {
        begin({2, i % 2 ? "mlx5" : "rxe", 0, nullptr});
        for (const unsigned host : {1U, 2U, 1U})
            resolve(host);
        assert_int_equal(rdma_sim_end(), 0);
    }
}

void thread_is_on_its_own_host(void **) {
    begin({3, "rxe", 0, nullptr});
    assert_int_equal(rdma_sim_use_host(3), 0);
    std::thread([] { resolve(2); }).join();
    std::thread([] { // on host 1
        ibv_gid gid;
        ibv_context *const context = open_first();
        assert_int_equal(ibv_query_gid(context, 1, 1, &gid), 0);
        assert_int_equal(gid.raw[15], 1);
        assert_int_equal(ibv_close_device(context), 0);
    })
        .join();
    ibv_gid gid;
    ibv_context *const context = open_first();
    assert_int_equal(ibv_query_gid(context, 1, 1, &gid), 0);
    assert_int_equal(gid.raw[15], 3);
    assert_int_equal(ibv_close_device(context), 0);
    assert_int_equal(rdma_sim_end(), 0);
    begin({2, "rxe", 0, nullptr}); // this thread is on host 1 of it
    resolve(1);
}

// ---- rdma_sim_explore()
// ----------------------------------------------------------------------

int succeed(void *) {
    return 0;
}

int open_and_close(void *) {
    return ibv_close_device(open_first());
}

// A second event never comes.
int wait_for_ever(void *) {
    rdma_cm_event *event;
    return rdma_get_cm_event(rdma_create_event_channel(), &event);
}

int poll_for_ever(void *) {
    ibv_context *const context = open_first();
    ibv_cq *const cq = ibv_create_cq(context, 1, nullptr, nullptr, 0);
    for (ibv_wc wc; ibv_poll_cq(cq, 1, &wc) == 0;)
        ;
    return 0;
}

// Waits 10 seconds; `argument` counts these programs.
int sleep_and_count(void *argument) {
    if (rdma_sim_advance(10'000 * MS) != 0)
        return 1;
    ++*static_cast<int *>(argument);
    return 0;
}

int count_events;

const char *check_count(void *) {
    return count_events == 2 ? nullptr : "a program did not wait";
}

void findings_name_the_cause(void **) {
    const struct {
        int (*run)(void *);
        const char *faults, *finding;
    } rows[] = {
        {succeed, nullptr, nullptr},
        {open_and_close, nullptr, nullptr},
        {[](void *) { return 7; }, nullptr, "seed 5: host2 ends with status 7"},
        {wait_for_ever, nullptr,
         "seed 5: the programs wait for ever: host2 waits in rdma_get_cm_event"},
        {poll_for_ever, nullptr,
         "seed 5: the programs wait for ever: host2 waits in ibv_poll_cq"},
        {[](void *) { return raise(SIGKILL); }, nullptr,
         "seed 5: a program is ended by signal 9 (Killed)"},
        {[](void *) {
             _exit(4);
             return 0;
         },
         nullptr, "seed 5: a program ends the process with status 4"},
        {open_and_close, "cut,fail,port-down", nullptr},
    };
    for (const auto &row : rows) {
        const rdma_sim_program program = {2, row.run, nullptr, nullptr};
        const rdma_sim_test test = {
            {2, "mlx5", 5, nullptr}, &program, 1, nullptr, nullptr, 20, row.faults};
        assert_int_equal(rdma_sim_explore(&test), row.finding ? RDMA_SIM_FOUND : 0);
        assert_string_equal(rdma_sim_error(), row.finding ? row.finding : "");
    }
}

void wait_of_a_program_takes_virtual_time_only(void **) {
    count_events = 0;
    const rdma_sim_program programs[] = {{1, sleep_and_count, &count_events, "first"},
                                         {1, sleep_and_count, &count_events, "second"}};
    const rdma_sim_test test = {
        {1, nullptr, 0, nullptr}, programs, 2, check_count, nullptr, 20, nullptr};
    assert_int_equal(rdma_sim_explore(&test), 0);
    assert_int_equal(count_events, 0); // of this process
}

void exploration_refuses_an_invalid_test(void **) {
    const rdma_sim_program good = {1, succeed, nullptr, nullptr};
    const rdma_sim_program elsewhere = {3, succeed, nullptr, nullptr};
    const rdma_sim_program empty = {1, nullptr, nullptr, nullptr};
    alignas(8) char bytes[16];
    const rdma_sim_memory far = {3, bytes, 8, 0}, odd = {1, bytes + 4, 8, 0};
    const struct {
        rdma_sim_test test;
        int error;
        const char *line;
    } rows[] = {
        {{{}, nullptr, 0, nullptr, nullptr, 0, nullptr}, EINVAL, "the test has no program"},
        {{{}, &good, 0, nullptr, nullptr, 0, nullptr}, EINVAL, "the test has no program"},
        {{{}, &empty, 1, nullptr, nullptr, 0, nullptr}, EINVAL, "program 0 has no function"},
        {{{}, &elsewhere, 1, nullptr, nullptr, 0, nullptr},
         ERANGE,
         "program 0 is on host3, there are 2 hosts"},
        {{{}, &good, 1, nullptr, nullptr, 0, "storm"}, EINVAL, "there is no fault 'storm'"},
        {{{}, &good, 1, nullptr, nullptr, 0, "clock-ahead"},
         ENOTSUP,
         "no host of this test can have the fault 'clock-ahead'"},
        {{{}, &good, 1, nullptr, nullptr, 0, "power-off"},
         ENOTSUP,
         "no host of this test can have the fault 'power-off'"},
        {{{}, &good, 1, nullptr, nullptr, 0, nullptr, "deep"},
         EINVAL,
         "there is no search 'deep'"},
        {{{}, &good, 1, nullptr, nullptr, 0, nullptr, nullptr, nullptr, 0, "caches"},
         EINVAL,
         "there is no platform 'caches'"},
        {{{}, &good, 1, nullptr, nullptr, 0, nullptr, nullptr, &far, 1},
         ERANGE,
         "memory 0 is on host3, there are 2 hosts"},
        {{{}, &good, 1, nullptr, nullptr, 0, nullptr, nullptr, &odd, 1},
         EINVAL,
         "memory 0 is empty, or does not begin at a multiple of 8"},
        {{{0, "rxe7", 0, nullptr}, &good, 1, nullptr, nullptr, 0, nullptr},
         ENODEV,
         "there is no device 'rxe7'"},
    };
    for (const auto &row : rows) {
        assert_int_equal(rdma_sim_explore(&row.test), row.error);
        assert_string_equal(rdma_sim_error(), row.line);
    }
    assert_int_equal(rdma_sim_explore(nullptr), EINVAL);
    assert_int_equal(rdma_sim_start(nullptr), 0);
    assert_int_equal(rdma_sim_explore(&rows[1].test), EBUSY);
    assert_int_equal(rdma_sim_end(), 0);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test_teardown(each_error_has_its_code_and_a_line, end),
        cmocka_unit_test_teardown(each_fault_of_the_table_is_accepted_or_refused, end),
        cmocka_unit_test_teardown(fault_occurs_at_once_or_by_call_or_by_time, end),
        cmocka_unit_test_teardown(hosts_of_many_fabrics_have_their_own_devices, end),
        cmocka_unit_test_teardown(thread_is_on_its_own_host, end),
        cmocka_unit_test(findings_name_the_cause),
        cmocka_unit_test(wait_of_a_program_takes_virtual_time_only),
        cmocka_unit_test(exploration_refuses_an_invalid_test),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
