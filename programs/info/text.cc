// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// text.cc -- the report as text, in lines that fit the terminal

#include <algorithm>
#include <sys/ioctl.h>
#include <unistd.h>

#include "info.hh"
#include "visible.hh"

namespace {

constexpr size_t WIDTH = 80, NARROWEST = 40, LABEL = 20;

// The columns of a line; 80 if the output is not a terminal.
size_t width() {
    winsize window;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0)
        return WIDTH;
    return std::max<size_t>(NARROWEST, window.ws_col);
}

// Replaces the names in braces, as in "MTU {mtu}", by the members of the object.
std::string expand(std::string pattern, const Json &object) {
    for (const auto &[key, value] : object.items())
        if (const size_t place = pattern.find(fmt::format("{{{}}}", key));
            place != std::string::npos)
            pattern.replace(place, key.size() + 2, text_at(object, key));
    return pattern;
}

class Lines {
  public:
    std::string text;

    // Prints a label and words; later lines are indented below the first word.
    void row(const std::string &label, std::string words) {
        const std::string head = fmt::format("  {:<{}}", label, LABEL);
        auto column = head.size();
        bool has_word = false;
        text += head;
        words = one_line(words) + ' ';
        for (size_t begin = 0, end; begin < words.size(); begin = end + 1) {
            end = words.find(' ', begin);
            if (has_word && column + 1 + end - begin > limit_) {
                text += fmt::format("\n{:{}}", "", head.size());
                column = head.size();
                has_word = false;
            }
            column += has_word + end - begin;
            text += has_word ? " " : "";
            text += words.substr(begin, end - begin);
            has_word = true;
        }
        text += '\n';
    }

    void result(const std::string &label, const Json &result, const char *yes, const char *no) {
        if (is_yes(result))
            return row(label, yes);
        row(label, std::string(result.at("is").is_null() ? "unknown" : no) +
                       expand(": {why}", result));
        row("", expand("-> {help}", result));
    }

    // Prints a row for each element of a list; only the first row has the label.
    void rows(std::string label, const Json &list, const std::string &pattern) {
        for (const Json &item : list) {
            row(label, item.is_string() ? item.get<std::string>() : expand(pattern, item));
            label.clear();
        }
    }

    void machine(const Json &report);
    void device(const Json &device, const Json &defaults);
    void memory(const Json &memory);
    void plan(const Json &plan);

  private:
    void port(const Json &port);
    void limits(const Json &limits, const Json &defaults);
    void registration(const Json &found);
    void cxl(const Json &cxl);

    size_t limit_ = width();
};

std::string limit_text(const Json &limit) {
    return limit.is_null() ? "unlimited" : limit.dump();
}

void Lines::machine(const Json &report) {
    const Json &versions = report.at("versions"), &request = report.at("asked");
    const Json &limits = report.at("limits"), &files = limits.at("descriptors");
    text += "This machine\n";
    row("librpma", text_at(versions, "librpma"));
    row("rdma-core", expand(versions.at("rdma_core").is_null()
                                ? "unknown: the name of {libibverbs} has no version"
                                : "{rdma_core}",
                            versions));
    row("kernel", text_at(versions, "kernel"));
    result("connection manager", report.at("connection_manager"), "yes", "no");
    result("locked memory", limits.at("locked_memory").at("unlimited"), "unlimited", "limited");
    row("descriptors", fmt::format("{}, at most {}; a connection uses two or three",
                                   limit_text(files.at("soft")), limit_text(files.at("hard"))));
    if (!report.at("rpma_flush").is_null())
        row("environment", "RPMA_FLUSH=" + escaped(text_at(report, "rpma_flush")));
    if (request.contains("behind"))
        row("address", expand("{address} is reached by {behind}", request));
    result("devices", report.at("usable"), "yes", "none is usable");
}

void Lines::port(const Json &port) {
    row("port", expand("{number}: {state}, {link_layer}, MTU {active_mtu} of {max_mtu}", port));
    row("link", expand(port.at("speed").is_null() ? "speed unknown"
                                                  : "{rate_gbit} Gbit/s, {width}X {speed}",
                       port));
    if (port.at("link_layer") == "InfiniBand")
        row("LID", expand(port.at("lid").is_null() ? "unknown: no subnet manager has set one"
                                                   : "{lid}",
                          port));
    std::string label = "GIDs";
    for (const Json &gid : port.at("gids")) {
        row(label, expand(std::string("{index}: ") +
                              (gid.at("address").is_null() ? "{gid}" : "{address}") +
                              (gid.at("netdev").is_null() ? " {type}" : " on {netdev} {type}"),
                          gid));
        label.clear();
    }
}

void Lines::limits(const Json &limits, const Json &defaults) {
    static constexpr struct {
        const char *label, *limit, *object;
        const char *setting; // nullptr: the size that the queues need
    } ROWS[] = {
        {"send queue", "sq_size", "connection", "sq_size"},
        {"receive queue", "rq_size", "connection", "rq_size"},
        {"completion queue", "cq_size", "connection", nullptr},
        {"shared receives", "srq_size", "shared_receive_queue", "rq_size"},
        {"SGEs", "max_sge", "connection", "max_sge"},
        {"SGEs of a read", "max_read_sge", "connection", "max_sge"},
        {"SGEs, shared", "max_srq_sge", "shared_receive_queue", "max_sge"},
        {"inline bytes", "inline_size", "connection", "inline_size"},
    };
    for (const auto &each : ROWS)
        row(each.label, fmt::format("{}; by default {}",
                                    limits.at(each.limit).is_null()
                                        ? "unknown, because no queue pair can be created"
                                        : "at most " + text_at(limits, each.limit),
                                    each.setting == nullptr
                                        ? "as needed"
                                        : text_at(defaults.at(each.object), each.setting)));
    row("reads and atomics", expand("at most {max_qp_init_rd_atom} outstanding as the "
                                    "initiator, {max_qp_rd_atom} as the target",
                                    limits));
    row("queue pairs", expand("at most {queue_pairs}", limits));
    row("regions", expand("at most {regions}", limits));
}

void Lines::registration(const Json &found) {
    result("registration", found.at("usage_plain"), "yes", "no");
    result("flush, visibility", found.at("usage_visibility"), "yes", "no");
    result("flush, persistent", found.at("usage_persistent"), "yes", "no");
    result("pinned", found.at("pinned"), "yes", "no");
    result("paged on demand", found.at("on_demand"), "yes", "no");
    result("persistent flush", found.at("persistent_flush"), "yes", "no");
    rows("remarks", found.at("remarks"), "");
}

void Lines::device(const Json &device, const Json &defaults) {
    text += expand("\nDevice {name}\n", device);
    result("usable", device.at("usable"), "yes", "no");
    if (!device.contains("ports"))
        return;
    row("driver", expand(std::string(device.at("driver").is_null() ? "unknown" : "{driver}") +
                             ", {transport}; " +
                             (device.at("rpma_devices").is_null() ? "not" : "{rpma_devices}") +
                             " in rpma_devices(7)",
                         device));
    rows("traps", device.at("traps"), "");
    row("vendor", fmt::format("{:#06x}, part {}{}{}", device.at("vendor_id").get<uint32_t>(),
                              device.at("vendor_part_id").get<uint32_t>(),
                              device.at("firmware") == "" ? "" : ", firmware ",
                              text_at(device, "firmware")));
    row("node GUID",
        expand(device.at("node_guid").is_null() ? "unknown" : "{node_guid}", device));
    row("NUMA node",
        expand(device.at("numa_node").is_null() ? "unknown" : "{numa_node}", device));
    rows("addresses", device.at("addresses"), "{address} on {netdev} (MTU {netdev_mtu})");
    for (const Json &one : device.at("ports"))
        port(one);
    const Json &operations = device.at("operations");
    result("flush", operations.at("native_flush"), "native", "emulated");
    result("atomic write", operations.at("native_atomic_write"), "native", "emulated");
    result("remote atomics", operations.at("remote_atomics"),
           operations.at("atomic_with") == "machine"
               ? "yes, atomic with processors and other devices as well"
               : "yes, atomic among those of the device",
           "no");
    result("on-demand paging", operations.at("on_demand_paging"), "yes", "no");
    limits(device.at("limits"), defaults);
    if (device.contains("registration"))
        registration(device.at("registration"));
}

void Lines::cxl(const Json &cxl) {
    row("CXL region", expand("{region}, mode {mode}, {size} bytes", cxl));
    for (const Json &device : cxl.at("devices")) {
        row("CXL device", expand("{memdev}, serial number {serial}, {persistent_size} bytes "
                                 "persistent, {volatile_size} volatile",
                                 device));
        result("GPF, device", device.at("flush_of_device"), "yes", "no");
        result("GPF, port", device.at("flush_of_port"), "yes", "no");
        row("dirty shutdowns",
            expand(device.at("dirty_shutdowns").is_null() ? "the kernel reports no count"
                                                          : "{dirty_shutdowns}",
                   device));
        row("poison list", expand(device.at("poison_list") == true
                                      ? "'cxl list -m {memdev} --media-errors' shows it"
                                      : "the device has none",
                                  device));
    }
    result("direct write", cxl.at("direct_write"), "yes", "no");
}

void Lines::memory(const Json &memory) {
    text += expand("\nMemory {path}\n", memory);
    row("kind", text_at(memory, "kind"));
    row("size", expand("{size} bytes, of which {tried_size} were tried", memory));
    row("alignment", text_at(memory, "alignment"));
    if (!memory.at("map_sync").is_null())
        row("MAP_SYNC", memory.at("map_sync") == true ? "yes" : "no");
    if (!memory.at("persistence_domain").is_null())
        row("power failure",
            expand("data survives that has reached: {persistence_domain}", memory));
    result("persistent", memory.at("persistent"), "yes", "no");
    if (!memory.at("cxl").is_null())
        cxl(memory.at("cxl"));
}

void Lines::plan(const Json &plan) {
    const auto limit = [&](const char *key) {
        result("", plan.at(key), "the limit suffices", "too many");
    };
    text +=
        expand("\nPlan for {connections} connections with queues of {queue} entries\n", plan);
    row("open files", expand("{descriptors}; {descriptors_shared} if all share a CQ", plan));
    limit("descriptors_fit");
    row("completions",
        expand("{completions} in the CQ of a connection; {completions_shared} in a CQ for all",
               plan));
    row("queue memory", fmt::format("{} KiB, pinned, with mlx5; other drivers differ",
                                    plan.at("queue_memory").get<uint64_t>() / 1024));
    limit("queue_memory_fits");
    row("mappings", expand("up to {mappings}", plan));
    limit("mappings_fit");
    row("local ports", expand("{connections}, of a client", plan));
    limit("ports_fit");
    row("time to connect",
        expand(
            "{seconds} s on soft-RoCE with one processor; 'rpma-perf -o connect' measures it",
            plan));
    for (const Json &device : plan.at("devices"))
        result(text_at(device, "name"), device.at("fits"), "its limits suffice", "too many");
    if (plan.at("devices").empty())
        row("devices", "none here, so the limits of a device were not compared");
}

} // namespace

std::string text_of(const Json &report) {
    Lines all;
    all.machine(report);
    for (const Json &device : report.at("devices"))
        all.device(device, report.at("defaults"));
    if (report.contains("memory"))
        all.memory(report.at("memory"));
    if (report.contains("plan"))
        all.plan(report.at("plan"));
    return all.text;
}
