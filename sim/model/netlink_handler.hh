// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// netlink_handler.hh -- one request of NETLINK_RDMA and its response: of netlink*.cc.

#pragma once

#include "netlink.hh"

#include "verbs.hh"

#include <algorithm>
#include <linux/netlink.h>
#include <optional>
#include <rdma/rdma_netlink.h>

namespace sim {

constexpr size_t MAX_MESSAGE_BYTES = 3776;    // NLMSG_GOODSIZE: the part of a dump in a message
constexpr size_t MAX_REPLY = MAX_MESSAGE / 2; // of protocol.hh
constexpr uint32_t PORT = 1;
// RDMA_NLDEV_ATTR_DRIVER_DETAILS, which older headers of Linux 6.1 lack (6.1.176).
constexpr uint16_t DRIVER_DETAILS = RDMA_NLDEV_ATTR_STAT_HWCOUNTER_DYNAMIC + 2;
constexpr int QPT_SMI = 0, QPT_GSI = 1, QPS_RTS = 3; // enum ib_qp_type, enum ib_qp_state
// ---- requests ------------------------------------------------------------------------------

// The attributes that a request can have, nldev_policy. `size` 0: a string.
constexpr struct {
    uint16_t type, size;
} POLICY[] = {
    {RDMA_NLDEV_ATTR_DEV_INDEX, 4},
    {RDMA_NLDEV_ATTR_PORT_INDEX, 4},
    {RDMA_NLDEV_ATTR_DEV_NAME, 0},
    {RDMA_NLDEV_ATTR_NDEV_NAME, 0},
    {RDMA_NLDEV_ATTR_LINK_TYPE, 0},
    {RDMA_NLDEV_ATTR_CHARDEV_TYPE, 0},
    {RDMA_NLDEV_ATTR_DEV_DIM, 1},
    {DRIVER_DETAILS, 1},
    {RDMA_NLDEV_ATTR_RES_LQPN, 4},
    {RDMA_NLDEV_ATTR_RES_CM_IDN, 4},
    {RDMA_NLDEV_ATTR_RES_CQN, 4},
    {RDMA_NLDEV_ATTR_RES_MRN, 4},
    {RDMA_NLDEV_ATTR_RES_PDN, 4},
    {RDMA_NLDEV_ATTR_RES_CTXN, 4},
    {RDMA_NLDEV_ATTR_RES_SRQN, 4},
    {RDMA_NLDEV_ATTR_STAT_MODE, 4},
    {RDMA_NLDEV_ATTR_STAT_RES, 4},
    {RDMA_NLDEV_ATTR_STAT_AUTO_MODE_MASK, 4},
    {RDMA_NLDEV_ATTR_STAT_COUNTER_ID, 4},
    {RDMA_NLDEV_SYS_ATTR_NETNS_MODE, 1},
    {RDMA_NLDEV_NET_NS_FD, 4},
};

class NetlinkRequest {
  public:
    // nlmsg_parse(), or nlmsg_parse_deprecated() unless `is_strict`
    static std::optional<NetlinkRequest> parse(std::span<const std::byte> bytes,
                                               bool is_strict) {
        NetlinkRequest made;
        size_t at = 0;
        while (at + NLA_HDRLEN <= bytes.size()) {
            nlattr head;
            memcpy(&head, bytes.data() + at, sizeof(head));
            if (head.nla_len < NLA_HDRLEN || head.nla_len > bytes.size() - at)
                break;
            const std::span value = bytes.subspan(at + NLA_HDRLEN, head.nla_len - NLA_HDRLEN);
            if (!made.add(head.nla_type & NLA_TYPE_MASK, value, is_strict))
                return {};
            at += NLA_ALIGN(head.nla_len);
        }
        if (is_strict && at < bytes.size())
            return {};
        return made;
    }
    bool has(unsigned type) const { return values_.contains(type); }
    uint32_t number(unsigned type) const {
        uint32_t value = 0;
        const auto found = values_.find(type);
        if (found != values_.end())
            memcpy(&value, found->second.data(), std::min(found->second.size(), sizeof(value)));
        return value;
    }
    std::string text(unsigned type) const {
        const auto found = values_.find(type);
        return found == values_.end()
                   ? std::string()
                   : std::string(reinterpret_cast<const char *>(found->second.data()));
    }

  private:
    bool add(unsigned type, std::span<const std::byte> value, bool is_strict) {
        const auto policy =
            std::ranges::find_if(POLICY, [&](const auto &row) { return row.type == type; });
        if (policy == std::end(POLICY)) {
            values_[type]; // only its presence
            return !is_strict || type < RDMA_NLDEV_ATTR_MAX;
        }
        const bool is_valid = policy->size == 0
                                  ? std::ranges::find(value, std::byte{0}) != value.end()
                              : is_strict ? value.size() == policy->size
                                          : value.size() >= policy->size;
        values_[type] =
            value.first(policy->size == 0 || !is_valid ? value.size() : policy->size);
        return is_valid;
    }
    std::map<unsigned, std::span<const std::byte>> values_;
};

// ---- resources -----------------------------------------------------------------------------

// An object, or one of ib_core.
struct Entry {
    const Object *object; // NULL: of ib_core
    uint32_t number;
};

class Handler;

// A row of fill_entries, with the fill function.
struct Resource {
    unsigned command;
    const char *name; // in the summary
    Object::Kind kind;
    unsigned table, entry, id;
    bool is_of_device; // not of a port
    bool (Handler::*fill)(const Entry &, Attributes &);
};

class Handler {
  public:
    Handler(Fabric &fabric, const Netlink &request, std::vector<std::byte> &messages,
            uint32_t &next)
        : fabric_(fabric), request_(request), messages_(messages), next_(next) {}

    // rdma_nl_rcv_msg()
    int execute(const nlmsghdr &head, std::span<const std::byte> payload);

  private:
    using Function = int (Handler::*)(const NetlinkRequest &);
    struct Command {
        unsigned number;
        Function get, dump; // NULL: EINVAL
        bool is_admin, is_strict, is_strict_dump;
    };
    static const Command COMMANDS[];
    static const Resource RESOURCES[];

    // ---- messages ----
    void begin() { made_.bytes.clear(); }
    int end() {
        nlmsghdr head{};
        head.nlmsg_len = static_cast<uint32_t>(NLMSG_HDRLEN + made_.bytes.size());
        head.nlmsg_type = type_;
        const auto *const bytes = reinterpret_cast<const std::byte *>(&head);
        messages_.insert(messages_.end(), bytes, bytes + sizeof(head));
        messages_.insert(messages_.end(), made_.bytes.begin(), made_.bytes.end());
        return 0;
    }
    void begin(const Device &device) { // fill_nldev_handle()
        begin();
        made_.put(RDMA_NLDEV_ATTR_DEV_INDEX, uint32_t{device.index});
        made_.put_string(RDMA_NLDEV_ATTR_DEV_NAME, device.name);
    }
    // Appends one message for each device, with the function.
    int dump_devices(void (Handler::*fill)(const Device &)) {
        for (const auto &device : fabric_.host(request_.host)->devices)
            if (!device->removed) {
                begin(*device);
                (this->*fill)(*device);
                end();
            }
        return 0;
    }
    Device *device_of(const NetlinkRequest &request) const {
        Device *const found =
            request.has(RDMA_NLDEV_ATTR_DEV_INDEX)
                ? fabric_.device(request_.host, request.number(RDMA_NLDEV_ATTR_DEV_INDEX))
                : nullptr;
        return found && !found->removed ? found : nullptr;
    }
    static bool has_port(const NetlinkRequest &request) {
        return request.number(RDMA_NLDEV_ATTR_PORT_INDEX) == PORT;
    }
    int get_device_with(const NetlinkRequest &request, void (Handler::*fill)(const Device &));

    // ---- devices and ports ----
    void fill_device(const Device &device);
    void fill_port(const Device &device);
    void fill_summary(const Device &device);
    int get_device(const NetlinkRequest &request) {
        return get_device_with(request, &Handler::fill_device);
    }
    int dump_all_devices(const NetlinkRequest &) { return dump_devices(&Handler::fill_device); }
    int get_port(const NetlinkRequest &request) {
        return has_port(request) ? get_device_with(request, &Handler::fill_port) : EINVAL;
    }
    int dump_ports(const NetlinkRequest &request) {
        return get_device_with(request, &Handler::fill_port);
    }
    int get_summary(const NetlinkRequest &request) {
        return get_device_with(request, &Handler::fill_summary);
    }
    int dump_summaries(const NetlinkRequest &) { return dump_devices(&Handler::fill_summary); }
    int get_system(const NetlinkRequest &request);
    int get_character_device(const NetlinkRequest &request);
    int not_supported(const NetlinkRequest &request);
    int add_link(const NetlinkRequest &request);
    int delete_link(const NetlinkRequest &request);

    // ---- resources ----
    std::vector<Entry> entries_of(const Resource &resource, const Device &device) const;
    int get_resource(const NetlinkRequest &request);
    int dump_resource(const NetlinkRequest &request) {
        return dump_resource(request, *resource_);
    }
    int dump_resource(const NetlinkRequest &request, const Resource &resource);
    int dump_entries(const Resource &resource, const Device &device, bool is_of_port);
    bool is_listed(const Object &object, const Device &device) const;
    bool fill_qp(const Entry &entry, Attributes &to);
    bool fill_cm_id(const Entry &entry, Attributes &to);
    bool fill_cq(const Entry &entry, Attributes &to);
    bool fill_mr(const Entry &entry, Attributes &to);
    bool fill_mr_statistics(const Entry &entry, Attributes &to);
    bool fill_pd(const Entry &entry, Attributes &to);
    bool fill_context(const Entry &entry, Attributes &to);
    bool fill_srq(const Entry &entry, Attributes &to);
    void fill_qps_of(const Srq &srq, Attributes &to);

    // ---- statistics ----
    void put_counters(const Device &device, bool has_values);
    int get_statistics(const NetlinkRequest &request);
    int dump_statistics(const NetlinkRequest &request);
    int get_counter_names(const NetlinkRequest &request);
    int set_statistics(const NetlinkRequest &request);

    Fabric &fabric_;
    const Netlink &request_;
    std::vector<std::byte> &messages_;
    uint32_t &next_;
    Attributes made_; // of the current message
    uint16_t type_ = 0;
    unsigned command_ = 0;
    const Resource *resource_ = nullptr; // of the command
};

} // namespace sim
