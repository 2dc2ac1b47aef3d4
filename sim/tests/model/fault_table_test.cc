// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// fault_table_test.cc -- the words of a fault, and the devices that have it.

#include "../../direct/direct.hh"
#include "../../explore/choices.hh"
#include "../../model/faults.hh"
#include "../../protocol/protocol_cm.hh"
#include "../client/connect_qp.hh"
#include "cm_network.hh"

#include <cerrno>
#include <rdma/rdma_cma.h>
#include <set>
#include <span>

extern "C" {
#include <csetjmp>
#include <cstdarg>

#include <cmocka.h>
}

namespace {

using namespace sim;

constexpr uint64_t MS = 1'000'000;

// The faults that not every device can have. sim/device/devices.tsv has the sources of the
// events.
void device_has_only_faults_of_its_driver(void **) {
    static const struct {
        const char *device, *faults;
    } rows[] = {
        {"rxe", "doorbell overrun remove cq-err qp-access-err gid-change"},
        {"siw", "doorbell overrun cq-err qp-fatal qp-req-err qp-access-err lid-change"},
        {"mlx5",
         "overrun remove cq-err qp-fatal qp-req-err qp-access-err path-mig path-mig-err "
         "srq-err device-fatal gid-change"},
        {"mlx5-ib", "overrun remove cq-err qp-fatal qp-req-err qp-access-err path-mig "
                    "path-mig-err srq-err device-fatal lid-change pkey-change gid-change"},
        {"mlx4",
         "overrun remove cq-err qp-fatal qp-req-err qp-access-err path-mig path-mig-err "
         "srq-err device-fatal gid-change"},
        {"mlx4-ib", "overrun remove cq-err qp-fatal qp-req-err qp-access-err path-mig "
                    "path-mig-err srq-err device-fatal lid-change pkey-change gid-change"},
        {"irdma-roce", "overrun remove cq-err qp-fatal qp-req-err qp-access-err gid-change"},
        {"irdma-iwarp", "overrun remove cq-err qp-fatal qp-req-err qp-access-err gid-change"},
        {"bnxt_re",
         "overrun remove cq-err qp-fatal qp-req-err qp-access-err srq-err gid-change"},
        {"cxgb4", "overrun cq-err qp-fatal qp-req-err qp-access-err device-fatal"},
        {"hns", "overrun remove cq-err qp-fatal qp-req-err qp-access-err path-mig path-mig-err "
                "srq-err gid-change"},
        {"erdma", "overrun remove cq-err qp-fatal"},
        {"erdma-roce", "overrun remove cq-err qp-fatal gid-change"},
        {"mana", "remove qp-fatal gid-change"},
        {"ionic", "overrun remove cq-err qp-fatal qp-req-err qp-access-err gid-change"},
        {"qedr", "overrun cq-err qp-fatal qp-req-err qp-access-err srq-err gid-change"},
        {"qedr-iwarp", "qp-fatal qp-access-err srq-err gid-change"},
    };
    const auto add = [](std::string &found, const sim_profile &device,
                        const std::string &action, const char *word) {
        if (is_possible(device, read_action(action)))
            found += std::string(found.empty() ? "" : " ") + word;
    };
    const char *const events[] = {"cq-err",     "qp-fatal",     "qp-req-err", "qp-access-err",
                                  "path-mig",   "path-mig-err", "srq-err",    "device-fatal",
                                  "lid-change", "pkey-change",  "gid-change", "sm-change"};
    for (const auto &row : rows) {
        const sim_profile &device = *sim_find_profile(row.device);
        std::string found;
        for (const char *const name : {"doorbell", "overrun", "remove"})
            add(found, device, std::string(name) + " host1", name);
        for (const char *const event : events)
            add(found, device, std::string("event host1 ") + event, event);
        assert_string_equal(found.c_str(), row.faults);
        const struct {
            const char *action;
            bool is_possible;
        } others[] = {{"drop-datagram host1", device.has_ud},
                      {"repeat-datagram host1", device.has_ud},
                      {"drop-cm host1", device.transport != SIM_IWARP},
                      {"port-down host1", true},
                      {"cut host1 host2", true}};
        for (const auto &other : others)
            assert_int_equal(is_possible(device, read_action(other.action)), other.is_possible);
    }
}

void invalid_fault_is_refused_with_its_reason(void **) {
    const struct {
        const char *text, *why;
    } rows[] = {
        {"", "it begins with a time, such as 2s, with 'after' and a host, or with a call, such "
             "as host2:ibv_post_send:3"},
        {"kill host1", "it begins with a time, such as 2s, with 'after' and a host, or with a "
                       "call, such as host2:ibv_post_send:3"},
        {"1s", "the action is missing"},
        {"at 1s", "the action is missing"},
        {"1s explode host1", "there is no action 'explode'"},
        {"after kill host1", "'after' is followed by a host"},
        {"1s kill", "a host is missing, such as host1"},
        {"1s kill hostx", "there is no host 'hostx'"},
        {"1s cut-one-way host1", "two hosts are missing, such as host1 host2"},
        {"1s cut host1 host1", "the hosts must differ"},
        {"1s flap host1", "a time is missing, such as 5ms"},
        {"1s refuse host1 0", "a count is missing, such as 3"},
        {"1s refuse host1 2 EWHAT", "there is no error 'EWHAT' of a call"},
        {"1s event host1 fire", "there is no event 'fire'"},
        {"1s kill host1 now", "unexpected 'now'"},
        {"1s kill host1 for", "'for' is followed by a time, such as 1s"},
        {"1s overrun host1 for 1s", "overrun does not last for a time"},
        {"1s fail host1", "a call is missing, such as ibv_reg_mr"},
        {"1s fail host1 ibv_fly", "there is no call 'ibv_fly'"},
        {"1s fail host1 ibv_post_send", "ibv_post_send creates no object"},
        {"host1:ibv_fly:1 kill", "there is no call 'ibv_fly'"},
        {"here:ibv_reg_mr:1 kill", "there is no host 'here'"},
        {"host1:ibv_reg_mr:x kill", "the number of the call is missing, such as ibv_reg_mr:3"},
        {"host1:ibv_reg_mr:0 kill", "the number of the call is missing, such as ibv_reg_mr:3"},
        {"host1:ibv_post_send fail", "ibv_post_send creates no object"},
    };
    for (const auto &row : rows)
        try {
            (void)read_fault(row.text);
            fail_msg("'%s' is accepted", row.text);
        } catch (const BadFault &bad) {
            assert_string_equal(bad.why.c_str(), row.why);
        }
}

// Each fault of the table that explore does not choose is the end of one that it chooses, or a
// late message; each call that creates an object fails; and each of its faults is chosen.
void explore_chooses_each_fault_of_the_table(void **) {
    const std::set<std::string> other_means = {"join", "delay",    "port-up",
                                               "thaw", "power-on", "insert"};
    std::set<std::string> kinds, failing, creating;
    std::set<int> doorbell_errors;
    for (const sim_profile &device : std::span(sim_profiles, sim_profile_count)) {
        ExploredHosts hosts;
        hosts.devices = {&device, &device};
        hosts.programs = {1, 2};
        hosts.pmem = {1};
        const ExploredFaults faults = explored_faults(hosts, {});
        std::set<size_t> chosen;
        for (uint64_t i = 0, state = 1; i < 100 * faults.size(); i++)
            chosen.insert(faults.choose(next_random(state)));
        assert_int_equal(chosen.size(), faults.size());
        for (size_t i = 0; i < faults.size(); i++) {
            kinds.insert(faults[i].kind->name);
            if (faults[i].kind == find_fault("doorbell"))
                doorbell_errors.insert(faults[i].error);
            if (faults[i].failing) {
                assert_int_equal(faults[i].error, ENOMEM);
                failing.insert(faults[i].failing->name);
            }
        }
    }
    for (const FaultKind &kind : fault_kinds())
        if (kinds.contains(kind.name) == other_means.contains(kind.name))
            fail_msg("explore: %s", kind.name);
    for (const CallName &call : call_names())
        if (call.creates)
            creating.insert(call.name);
    assert_true(failing == creating);
    assert_true((doorbell_errors == std::set<int>{EIO, ENOMEM}));
    assert_true(creating.contains("ibv_reg_mr") && creating.contains("rdma_create_id"));
}

void host_of_a_call_is_the_default_host(void **) {
    const Fault fault = read_fault("host2:ibv_reg_mr:3 5ms fail EINVAL");
    assert_int_equal(fault.hosts.size(), 1);
    assert_int_equal(fault.hosts[0], 2);
    assert_int_equal(fault.time, 5 * MS);
    assert_string_equal(fault.failing->name, "ibv_reg_mr");
    assert_int_equal(fault.nth, 3);
    assert_int_equal(fault.error, EINVAL);
    const Fault lasting = read_fault("host1:rdma_connect kill host2 for 2s");
    assert_int_equal(lasting.hosts[0], 2);
    assert_int_equal(lasting.nth, 1);
    assert_int_equal(lasting.lasts, 2000 * MS);
}

// Hosts without programs.
class EmptyMachines : public Machines {
  public:
    explicit EmptyMachines(Fabric &of) : fabric_(of) {}
    Fabric &fabric() override { return fabric_; }
    void kill(const Fault &) override {}
    void start(const Fault &) override {}
    void suspend(const Fault &, bool) override {}
    void power_off(const Fault &) override {}
    void set_clock(unsigned, uint64_t) override {}

  private:
    Fabric &fabric_;
};

// The links are cut and joined by turns, and joined when the time of the fault ends, also if
// this is within an interval.
void flapping_link_is_joined_when_its_time_ends(void **) {
    for (const bool is_of_all : {false, true})
        for (const bool lasts : {false, true}) {
            Network network("rxe");
            Fabric &fabric = network.fabric;
            EmptyMachines machines(fabric);
            const Fault fault = read_action(
                std::string(is_of_all ? "flap host2 40ms" : "flap host2 host1 40ms") +
                (lasts ? " for 100ms" : ""));
            apply(machines, fault);
            for (uint64_t time = 0; time < 1000; time += 5) {
                fabric.advance(time * MS + 1);
                const bool is_cut = time / 40 % 2 == 0 && (!lasts || time < 100);
                assert_int_equal(fabric.reachable(1, 2), !is_cut);
                assert_int_equal(fabric.reachable(2, 1), !is_cut);
            }
        }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(device_has_only_faults_of_its_driver),
        cmocka_unit_test(invalid_fault_is_refused_with_its_reason),
        cmocka_unit_test(explore_chooses_each_fault_of_the_table),
        cmocka_unit_test(host_of_a_call_is_the_default_host),
        cmocka_unit_test(flapping_link_is_joined_when_its_time_ends),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
