// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// plan.cc -- what a number of connections needs, next to the limits of this machine;
// rpma_limits(7) has the formulas

#include <bit>
#include <cstdio>

#include "info.hh"

namespace {

constexpr uint64_t PAGE = 4096;
// rdma-core, providers/mlx5/verbs.c: mlx5_calc_send_wqe() of a queue pair with one SGE and few
// inline bytes, mlx5_calc_rcv_wqe(), get_cqe_size(); mlx5_calc_sq_size(), mlx5_calc_rq_size()
// and mlx5_create_cq() round up.
constexpr uint64_t SEND_ENTRY = 256, RECEIVE_ENTRY = 16, COMPLETION = 64;
// docs/performance.md, "One more connection": soft-RoCE on one processor
constexpr uint64_t CONNECTIONS_PER_SECOND = 1500;

uint64_t pages(uint64_t bytes) {
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

// The memory of a connection's queues, with a CQ of its own.
uint64_t queue_memory(uint64_t queue) {
    return pages(std::bit_ceil(queue) * (SEND_ENTRY + RECEIVE_ENTRY)) +
           pages(std::bit_ceil(2 * queue + 1) * COMPLETION);
}

Json fits(uint64_t needed, const Json &limit, std::string_view what, std::string_view help) {
    if (limit.is_null() || needed <= limit.get<uint64_t>())
        return yes();
    return no(fmt::format("the limit is {}{}", limit.dump(), what), help);
}

Json local_ports() {
    unsigned first = 0, last = 0;
    const std::string range = read_line("/proc/sys/net/ipv4/ip_local_port_range");
    return std::sscanf(range.c_str(), "%u %u", &first, &last) == 2 && first <= last
               ? Json(last - first + 1)
               : Json();
}

Json limit_of_file(const std::string &path) {
    const uint64_t number = read_number(path);
    return number == 0 ? Json() : Json(number);
}

Json fits_device(const Json &device, const PlanSize &size) {
    static constexpr char SHORTER[] = "make the queues shorter, or use several devices";
    const Json &limits = device.at("limits");
    const struct {
        uint64_t needed;
        const char *limit, *what, *help;
    } CHECKS[] = {
        {size.connections, "queue_pairs", " queue pairs for all programs",
         "use several devices or machines"},
        {size.queue, "sq_size", " entries in a send queue", SHORTER},
        {2 * size.queue, "cq_size", " completions in a CQ", SHORTER},
        {size.connections, "completion_queues", " CQs for all programs",
         "share CQs: rpma_cq_new(3)"},
    };
    for (const auto &each : CHECKS)
        if (Json result = fits(each.needed, limits.at(each.limit), each.what, each.help);
            !is_yes(result))
            return result;
    return yes();
}

} // namespace

Json plan(const PlanSize &size, const Json &report) {
    const uint64_t count = size.connections, descriptors = 2 * count + 1, mappings = 3 * count;
    const uint64_t pinned = count * queue_memory(size.queue);
    const Json &limits = report.at("limits"), &locked = limits.at("locked_memory");
    Json result = {
        {"connections", count},
        {"queue", size.queue},
        {"descriptors", descriptors},
        {"descriptors_shared", count + 2},
        {"completions", 2 * size.queue},
        {"completions_shared", 2 * size.queue * count},
        {"queue_memory", pinned},
        {"mappings", mappings},
        {"seconds", (count + CONNECTIONS_PER_SECOND - 1) / CONNECTIONS_PER_SECOND},
        {"descriptors_fit",
         fits(descriptors, limits.at("descriptors").at("soft"), " (RLIMIT_NOFILE)",
              "raise it with 'ulimit -n' or LimitNOFILE= of systemd, or share a CQ: "
              "rpma_cq_new(3)")},
        {"queue_memory_fits", is_yes(locked.at("unlimited"))
                                  ? yes()
                                  : fits(pinned, locked.at("soft"), " bytes (RLIMIT_MEMLOCK)",
                                         "raise it with 'ulimit -l' or LimitMEMLOCK= of "
                                         "systemd, or make the queues shorter")},
        {"mappings_fit",
         fits(mappings, limit_of_file("/proc/sys/vm/max_map_count"), " (vm.max_map_count)",
              "raise it with sysctl, or share CQs and receive queues")},
        {"ports_fit", fits(count, local_ports(), " (net.ipv4.ip_local_port_range)",
                           "widen the range with sysctl, or use several machines")},
        {"devices", Json::array()}};
    for (const Json &device : report.at("devices"))
        if (device.contains("limits"))
            result["devices"].push_back(
                {{"name", device.at("name")}, {"fits", fits_device(device, size)}});
    return result;
}
