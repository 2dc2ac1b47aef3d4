// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// netlink.cc -- NETLINK_RDMA, as Linux 6.1, drivers/infiniband/core/nldev.c: each function
// names the one that it imitates. The order of attributes is that of the kernel, too.
//
// The number of an object is its handle, because the kernel's numbers have no meaning either.

#include "netlink.hh"

#include "verbs.hh"

#include <algorithm>
#include <cerrno>
#include <linux/netlink.h>
#include <optional>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_netlink.h>

namespace sim {

namespace {

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

class Request {
  public:
    // nlmsg_parse(), or nlmsg_parse_deprecated() unless `is_strict`
    static std::optional<Request> parse(std::span<const std::byte> bytes, bool is_strict) {
        Request made;
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
    using Function = int (Handler::*)(const Request &);
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
    Device *device_of(const Request &request) const {
        Device *const found =
            request.has(RDMA_NLDEV_ATTR_DEV_INDEX)
                ? fabric_.device(request_.host, request.number(RDMA_NLDEV_ATTR_DEV_INDEX))
                : nullptr;
        return found && !found->removed ? found : nullptr;
    }
    static bool has_port(const Request &request) {
        return request.number(RDMA_NLDEV_ATTR_PORT_INDEX) == PORT;
    }
    int get_device_with(const Request &request, void (Handler::*fill)(const Device &));

    // ---- devices and ports ----
    void fill_device(const Device &device);
    void fill_port(const Device &device);
    void fill_summary(const Device &device);
    int get_device(const Request &request) {
        return get_device_with(request, &Handler::fill_device);
    }
    int dump_all_devices(const Request &) { return dump_devices(&Handler::fill_device); }
    int get_port(const Request &request) {
        return has_port(request) ? get_device_with(request, &Handler::fill_port) : EINVAL;
    }
    int dump_ports(const Request &request) {
        return get_device_with(request, &Handler::fill_port);
    }
    int get_summary(const Request &request) {
        return get_device_with(request, &Handler::fill_summary);
    }
    int dump_summaries(const Request &) { return dump_devices(&Handler::fill_summary); }
    int get_system(const Request &request);
    int get_character_device(const Request &request);
    int not_supported(const Request &request);
    int add_link(const Request &request);
    int delete_link(const Request &request);

    // ---- resources ----
    std::vector<Entry> entries_of(const Resource &resource, const Device &device) const;
    int get_resource(const Request &request);
    int dump_resource(const Request &request) { return dump_resource(request, *resource_); }
    int dump_resource(const Request &request, const Resource &resource);
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
    int get_statistics(const Request &request);
    int dump_statistics(const Request &request);
    int get_counter_names(const Request &request);
    int set_statistics(const Request &request);

    Fabric &fabric_;
    const Netlink &request_;
    std::vector<std::byte> &messages_;
    uint32_t &next_;
    Attributes made_; // of the current message
    uint16_t type_ = 0;
    unsigned command_ = 0;
    const Resource *resource_ = nullptr; // of the command
};

const Resource Handler::RESOURCES[] = {
    {RDMA_NLDEV_CMD_RES_PD_GET, "pd", Object::PD, RDMA_NLDEV_ATTR_RES_PD,
     RDMA_NLDEV_ATTR_RES_PD_ENTRY, RDMA_NLDEV_ATTR_RES_PDN, true, &Handler::fill_pd},
    {RDMA_NLDEV_CMD_RES_CQ_GET, "cq", Object::CQ, RDMA_NLDEV_ATTR_RES_CQ,
     RDMA_NLDEV_ATTR_RES_CQ_ENTRY, RDMA_NLDEV_ATTR_RES_CQN, true, &Handler::fill_cq},
    {RDMA_NLDEV_CMD_RES_QP_GET, "qp", Object::QP, RDMA_NLDEV_ATTR_RES_QP,
     RDMA_NLDEV_ATTR_RES_QP_ENTRY, RDMA_NLDEV_ATTR_RES_LQPN, false, &Handler::fill_qp},
    {RDMA_NLDEV_CMD_RES_CM_ID_GET, "cm_id", Object::CM_ID, RDMA_NLDEV_ATTR_RES_CM_ID,
     RDMA_NLDEV_ATTR_RES_CM_ID_ENTRY, RDMA_NLDEV_ATTR_RES_CM_IDN, false, &Handler::fill_cm_id},
    {RDMA_NLDEV_CMD_RES_MR_GET, "mr", Object::MR, RDMA_NLDEV_ATTR_RES_MR,
     RDMA_NLDEV_ATTR_RES_MR_ENTRY, RDMA_NLDEV_ATTR_RES_MRN, true, &Handler::fill_mr},
    {RDMA_NLDEV_CMD_RES_CTX_GET, "ctx", Object::CONTEXT, RDMA_NLDEV_ATTR_RES_CTX,
     RDMA_NLDEV_ATTR_RES_CTX_ENTRY, RDMA_NLDEV_ATTR_RES_CTXN, true, &Handler::fill_context},
    {RDMA_NLDEV_CMD_RES_SRQ_GET, "srq", Object::SRQ, RDMA_NLDEV_ATTR_RES_SRQ,
     RDMA_NLDEV_ATTR_RES_SRQ_ENTRY, RDMA_NLDEV_ATTR_RES_SRQN, true, &Handler::fill_srq},
};

// nldev_cb_table
const Handler::Command Handler::COMMANDS[] = {
    {RDMA_NLDEV_CMD_GET, &Handler::get_device, &Handler::dump_all_devices, false, false, false},
    {RDMA_NLDEV_CMD_SET, &Handler::not_supported, nullptr, true, false, false},
    {RDMA_NLDEV_CMD_NEWLINK, &Handler::add_link, nullptr, true, false, false},
    {RDMA_NLDEV_CMD_DELLINK, &Handler::delete_link, nullptr, true, false, false},
    {RDMA_NLDEV_CMD_PORT_GET, &Handler::get_port, &Handler::dump_ports, false, false, false},
    {RDMA_NLDEV_CMD_SYS_GET, &Handler::get_system, nullptr, false, true, false},
    {RDMA_NLDEV_CMD_SYS_SET, &Handler::not_supported, nullptr, true, true, false},
    {RDMA_NLDEV_CMD_RES_GET, &Handler::get_summary, &Handler::dump_summaries, false, false,
     false},
    {RDMA_NLDEV_CMD_GET_CHARDEV, &Handler::get_character_device, nullptr, false, true, false},
    {RDMA_NLDEV_CMD_STAT_SET, &Handler::set_statistics, nullptr, true, true, false},
    {RDMA_NLDEV_CMD_STAT_GET, &Handler::get_statistics, &Handler::dump_statistics, false, true,
     true},
    {RDMA_NLDEV_CMD_STAT_DEL, &Handler::not_supported, nullptr, true, true, false},
    {RDMA_NLDEV_CMD_STAT_GET_STATUS, &Handler::get_counter_names, nullptr, false, true, false},
};

int Handler::execute(const nlmsghdr &head, std::span<const std::byte> payload) {
    type_ = head.nlmsg_type;
    command_ = RDMA_NL_GET_OP(type_);
    if (RDMA_NL_GET_CLIENT(type_) != RDMA_NL_NLDEV)
        return EINVAL;
    const bool is_dump = head.nlmsg_flags & NLM_F_DUMP;
    const auto found = std::ranges::find_if(
        COMMANDS, [this](const Command &each) { return each.number == command_; });
    resource_ = std::ranges::find_if(
        RESOURCES, [this](const Resource &each) { return each.command == command_; });
    const bool is_resource = resource_ != std::end(RESOURCES);
    const Command resource = {
        command_, &Handler::get_resource, &Handler::dump_resource, false, false, false};
    if (found == std::end(COMMANDS) && !is_resource)
        return EINVAL;
    const Command &command = is_resource ? resource : *found;
    if (command.is_admin && !request_.is_admin)
        return EPERM;
    const Function function = is_dump ? command.dump : command.get;
    const auto request =
        Request::parse(payload, is_dump ? command.is_strict_dump : command.is_strict);
    return function && request ? (this->*function)(*request) : EINVAL;
}

// ---- devices and ports ---------------------------------------------------------------------

int Handler::get_device_with(const Request &request, void (Handler::*fill)(const Device &)) {
    const Device *const device = device_of(request);
    if (!device)
        return EINVAL;
    begin(*device);
    (this->*fill)(*device);
    return end();
}

bool has_firmware(const sim_profile &profile) {
    return !sim_is_software(&profile) && strcmp(profile.driver, "erdma") != 0;
}

// fill_dev_info(). mlx5 moderates completions of the kernel: hw/mlx5/main.c, use_cq_dim.
void Handler::fill_device(const Device &device) {
    const sim_profile &profile = *device.profile;
    static constexpr const char *PROTOCOLS[] = {"ib", "roce", "iw"}; // by sim_transport
    made_.put(RDMA_NLDEV_ATTR_PORT_INDEX, PORT);
    made_.put(RDMA_NLDEV_ATTR_CAP_FLAGS, uint64_t{profile.attr.device_cap_flags});
    if (has_firmware(profile))
        made_.put_string(RDMA_NLDEV_ATTR_FW_VERSION, profile.attr.fw_ver);
    made_.put(RDMA_NLDEV_ATTR_NODE_GUID, device.guid);
    made_.put(RDMA_NLDEV_ATTR_SYS_IMAGE_GUID, device.guid);
    made_.put(
        RDMA_NLDEV_ATTR_DEV_NODE_TYPE,
        static_cast<uint8_t>(profile.transport == SIM_IWARP ? IBV_NODE_RNIC : IBV_NODE_CA));
    made_.put(RDMA_NLDEV_ATTR_DEV_DIM, uint8_t{strcmp(profile.driver, "mlx5_core") == 0});
    made_.put_string(RDMA_NLDEV_ATTR_DEV_PROTOCOL, PROTOCOLS[profile.transport]);
}

// fill_port_info()
void Handler::fill_port(const Device &device) {
    const bool is_infiniband = device.profile->transport == SIM_INFINIBAND;
    const ibv_port_attr attr = Fabric::port_of(device);
    made_.put(RDMA_NLDEV_ATTR_PORT_INDEX, PORT);
    if (is_infiniband) {
        made_.put(RDMA_NLDEV_ATTR_CAP_FLAGS, uint64_t{attr.port_cap_flags});
        made_.put(RDMA_NLDEV_ATTR_SUBNET_PREFIX,
                  __builtin_bswap64(device.gids[0].global.subnet_prefix));
        made_.put(RDMA_NLDEV_ATTR_LID, uint32_t{attr.lid});
        made_.put(RDMA_NLDEV_ATTR_SM_LID, uint32_t{attr.sm_lid});
        made_.put(RDMA_NLDEV_ATTR_LMC, uint8_t{attr.lmc});
    }
    made_.put(RDMA_NLDEV_ATTR_PORT_STATE, static_cast<uint8_t>(attr.state));
    made_.put(RDMA_NLDEV_ATTR_PORT_PHYS_STATE, attr.phys_state);
    if (is_infiniband)
        return;
    made_.put(RDMA_NLDEV_ATTR_NDEV_INDEX, uint32_t{device.interface_index()});
    made_.put_string(RDMA_NLDEV_ATTR_NDEV_NAME, device.interface());
}

// fill_res_info()
void Handler::fill_summary(const Device &device) {
    const size_t table = made_.nest(RDMA_NLDEV_ATTR_RES_SUMMARY);
    for (const Resource &resource : RESOURCES) {
        const size_t entry = made_.nest(RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY);
        made_.put_string(RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME, resource.name);
        made_.put(RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR,
                  uint64_t{entries_of(resource, device).size()});
        made_.unnest(entry);
    }
    made_.unnest(table);
}

// nldev_sys_get_doit()
int Handler::get_system(const Request &) {
    begin();
    made_.put(RDMA_NLDEV_SYS_ATTR_NETNS_MODE, uint8_t{1}); // shared
    made_.put(RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK, uint8_t{1});
    return end();
}

// enum rdma_driver_id; of other drivers, the headers of Linux 6.1 have none.
uint32_t driver_id_of(const sim_profile &profile) {
    static constexpr struct {
        const char *driver;
        uint32_t id;
    } IDS[] = {
        {"rdma_rxe", RDMA_DRIVER_RXE},   {"siw", RDMA_DRIVER_SIW},
        {"mlx5_core", RDMA_DRIVER_MLX5}, {"mlx4_core", RDMA_DRIVER_MLX4},
        {"ice", RDMA_DRIVER_IRDMA},      {"bnxt_en", RDMA_DRIVER_BNXT_RE},
        {"cxgb4", RDMA_DRIVER_CXGB4},    {"hns3", RDMA_DRIVER_HNS},
        {"erdma", RDMA_DRIVER_ERDMA},    {"qede", RDMA_DRIVER_QEDR},
    };
    for (const auto &row : IDS)
        if (strcmp(row.driver, profile.driver) == 0)
            return row.id;
    return RDMA_DRIVER_UNKNOWN;
}

// nldev_get_chardev(), with ib_uverbs_get_nl_info() and ucma_get_global_nl_info(). The fabric
// has no device for MADs (umad).
int Handler::get_character_device(const Request &request) {
    const std::string type = request.text(RDMA_NLDEV_ATTR_CHARDEV_TYPE);
    const bool has_device = request.has(RDMA_NLDEV_ATTR_DEV_INDEX),
               has_port_index = request.has(RDMA_NLDEV_ATTR_PORT_INDEX);
    const Device *const device = device_of(request);
    if (!request.has(RDMA_NLDEV_ATTR_CHARDEV_TYPE) || (has_device && !device) ||
        (has_port_index && (!has_device || !has_port(request))))
        return EINVAL;
    const bool is_verbs = type == "uverbs" && device, is_cm = type == "rdma_cm" && !device;
    if (is_verbs && has_port_index)
        return EINVAL;
    if (!is_verbs && !is_cm)
        return EOPNOTSUPP;
    begin();
    if (is_verbs && driver_id_of(*device->profile) != RDMA_DRIVER_UNKNOWN)
        made_.put(RDMA_NLDEV_ATTR_UVERBS_DRIVER_ID, driver_id_of(*device->profile));
    // huge_encode_dev()
    made_.put(RDMA_NLDEV_ATTR_CHARDEV,
              uint64_t{is_verbs ? Device::DEVICE_MAJOR << 8 | device->device_minor()
                                : 10U << 8 | 122});
    made_.put(RDMA_NLDEV_ATTR_CHARDEV_ABI, uint64_t{is_verbs ? 1U : 4U});
    made_.put_string(RDMA_NLDEV_ATTR_CHARDEV_NAME,
                     is_verbs ? "uverbs" + std::to_string(device->index) : "rdma_cm");
    return end();
}

int Handler::not_supported(const Request &) {
    return EOPNOTSUPP;
}

// nldev_newlink(). Each network device has its RDMA device already.
int Handler::add_link(const Request &request) {
    const std::string name = request.text(RDMA_NLDEV_ATTR_DEV_NAME);
    if (!request.has(RDMA_NLDEV_ATTR_NDEV_NAME) || !request.has(RDMA_NLDEV_ATTR_LINK_TYPE) ||
        name.empty() || name.find('%') != name.npos)
        return EINVAL;
    for (const auto &device : fabric_.host(request_.host)->devices)
        if (request.text(RDMA_NLDEV_ATTR_NDEV_NAME) == device->interface())
            return EEXIST;
    return ENODEV;
}

// nldev_dellink(): only soft-RoCE and soft-iWARP (IBK_ALLOW_USER_UNREG)
int Handler::delete_link(const Request &request) {
    const Device *const device = device_of(request);
    return device && sim_is_software(device->profile) ? EOPNOTSUPP : EINVAL;
}

// ---- resources -----------------------------------------------------------------------------

// A listener of any address has an ID on each device: core/cma.c, cma_listen_on_dev().
bool is_listener_of_all(const CmId &id) {
    return !id.device && id.state == SIM_CM_LISTENING;
}

bool Handler::is_listed(const Object &object, const Device &device) const {
    if (!object.session || object.session->host != device.host)
        return false;
    if (object.kind != Object::CM_ID)
        return Verbs::context_of(object)->device == &device;
    const auto &id = static_cast<const CmId &>(object);
    const bool is_attached = id.state != SIM_CM_RESOLVING || id.bound_device;
    return is_listener_of_all(id) || (id.device == &device && is_attached);
}

// core/mad.c, ib_mad_port_open(): ib_core has a PD, a CQ and QPs for MADs.
std::vector<Entry> Handler::entries_of(const Resource &resource, const Device &device) const {
    std::vector<Entry> entries;
    const sim_transport transport = device.profile->transport;
    if (transport != SIM_IWARP && (resource.kind == Object::PD || resource.kind == Object::CQ))
        entries.push_back({nullptr, 0});
    for (const auto &[handle, object] : fabric_.objects())
        if (object->kind == resource.kind && is_listed(*object, device))
            entries.push_back({object.get(), resource.kind == Object::QP
                                                 ? static_cast<const Qp &>(*object).number
                                                 : handle});
    // core/restrack.c, rdma_restrack_add(): their numbers contain the port.
    if (resource.kind == Object::QP && transport == SIM_INFINIBAND)
        entries.push_back({nullptr, PORT << 24 | QPT_SMI});
    if (resource.kind == Object::QP && transport != SIM_IWARP)
        entries.push_back({nullptr, PORT << 24 | QPT_GSI});
    return entries;
}

// fill_res_name_pid()
void fill_owner(const Entry &entry, Attributes &to) {
    if (!entry.object)
        to.put_string(RDMA_NLDEV_ATTR_RES_KERN_NAME, "ib_core");
    else if (entry.object->pid != 0)
        to.put(RDMA_NLDEV_ATTR_RES_PID, static_cast<uint32_t>(entry.object->pid));
}

// fill_res_qp_entry(). The functions return true if the object belongs to port 1.
bool Handler::fill_qp(const Entry &entry, Attributes &to) {
    const auto *const qp = static_cast<const Qp *>(entry.object);
    const uint8_t type = qp ? static_cast<uint8_t>(qp->type) : entry.number & 0xff;
    const bool has_port = !qp || qp->attr.port_num == PORT;
    if (has_port)
        to.put(RDMA_NLDEV_ATTR_PORT_INDEX, PORT);
    to.put(RDMA_NLDEV_ATTR_RES_LQPN, qp ? qp->number : entry.number & 0xff);
    if (qp && qp->pd)
        to.put(RDMA_NLDEV_ATTR_RES_PDN, qp->pd->handle);
    fill_owner(entry, to);
    const bool is_connected = type == IBV_QPT_RC || type == IBV_QPT_UC;
    if (is_connected) {
        to.put(RDMA_NLDEV_ATTR_RES_RQPN, uint32_t{qp->attr.dest_qp_num});
        to.put(RDMA_NLDEV_ATTR_RES_RQ_PSN, uint32_t{qp->attr.rq_psn});
    }
    to.put(RDMA_NLDEV_ATTR_RES_SQ_PSN, qp ? qp->attr.sq_psn : 0U);
    if (is_connected)
        to.put(RDMA_NLDEV_ATTR_RES_PATH_MIG_STATE,
               static_cast<uint8_t>(qp->attr.path_mig_state));
    to.put(RDMA_NLDEV_ATTR_RES_TYPE, type);
    to.put(RDMA_NLDEV_ATTR_RES_STATE,
           static_cast<uint8_t>(qp ? static_cast<int>(qp->attr.qp_state) : QPS_RTS));
    return has_port;
}

// enum rdma_cm_state
uint8_t state_of(const CmId &id) {
    switch (id.state) {
    case SIM_CM_IDLE:
        return 0;
    case SIM_CM_BOUND:
        return 7;
    case SIM_CM_RESOLVING:
        return 1;
    case SIM_CM_RESOLVED:
        return 2;
    case SIM_CM_ROUTING:
        return 3;
    case SIM_CM_ROUTED:
        return 4;
    case SIM_CM_LISTENING:
        return 8;
    default:
        return id.is_disconnected ? 6 : 5; // DISCONNECT, CONNECT
    }
}

void put_address(unsigned type, const CmAddress &address, Attributes &to) {
    sockaddr_storage full{};
    memcpy(&full, &address, sizeof(address));
    if (full.ss_family != 0)
        to.put(type, full);
}

// fill_res_cm_id_entry()
bool Handler::fill_cm_id(const Entry &entry, Attributes &to) {
    const auto &id = static_cast<const CmId &>(*entry.object);
    if (id.device)
        to.put(RDMA_NLDEV_ATTR_PORT_INDEX, PORT);
    if (id.local.qp_num != 0) {
        to.put(RDMA_NLDEV_ATTR_RES_LQPN, id.local.qp_num);
        to.put(RDMA_NLDEV_ATTR_RES_TYPE, static_cast<uint8_t>(id.qp_type));
    }
    to.put(RDMA_NLDEV_ATTR_RES_PS, uint32_t{id.port_space});
    to.put(RDMA_NLDEV_ATTR_RES_STATE, state_of(id));
    put_address(RDMA_NLDEV_ATTR_RES_SRC_ADDR, id.source, to);
    put_address(RDMA_NLDEV_ATTR_RES_DST_ADDR, id.destination, to);
    to.put(RDMA_NLDEV_ATTR_RES_CM_IDN, entry.number);
    fill_owner(entry, to);
    return id.device;
}

// fill_res_cq_entry(). core/mad.c: 128 and 512 entries, IB_POLL_UNBOUND_WORKQUEUE
bool Handler::fill_cq(const Entry &entry, Attributes &to) {
    const auto *const cq = static_cast<const Cq *>(entry.object);
    to.put(RDMA_NLDEV_ATTR_RES_CQE, cq ? cq->entries : 640U);
    to.put(RDMA_NLDEV_ATTR_RES_USECNT, uint64_t{cq ? cq->users : 2U});
    if (!cq)
        to.put(RDMA_NLDEV_ATTR_RES_POLL_CTX, uint8_t{2});
    to.put(RDMA_NLDEV_ATTR_DEV_DIM, uint8_t{0});
    to.put(RDMA_NLDEV_ATTR_RES_CQN, entry.number);
    if (cq)
        to.put(RDMA_NLDEV_ATTR_RES_CTXN, cq->context->handle);
    fill_owner(entry, to);
    return true;
}

// fill_res_mr_entry()
bool Handler::fill_mr(const Entry &entry, Attributes &to) {
    const auto &mr = static_cast<const Mr &>(*entry.object);
    if (request_.is_admin) {
        to.put(RDMA_NLDEV_ATTR_RES_RKEY, mr.key);
        to.put(RDMA_NLDEV_ATTR_RES_LKEY, mr.key);
    }
    to.put(RDMA_NLDEV_ATTR_RES_MRLEN, mr.length);
    to.put(RDMA_NLDEV_ATTR_RES_MRN, entry.number);
    to.put(RDMA_NLDEV_ATTR_RES_PDN, mr.pd->handle);
    fill_owner(entry, to);
    return true;
}

// fill_stat_mr_entry()
bool Handler::fill_mr_statistics(const Entry &entry, Attributes &to) {
    to.put(RDMA_NLDEV_ATTR_RES_MRN, entry.number);
    return true;
}

// fill_res_pd_entry()
bool Handler::fill_pd(const Entry &entry, Attributes &to) {
    const auto *const pd = static_cast<const Pd *>(entry.object);
    if (request_.is_admin)
        to.put(RDMA_NLDEV_ATTR_RES_LOCAL_DMA_LKEY, uint32_t{0});
    to.put(RDMA_NLDEV_ATTR_RES_USECNT, uint64_t{pd ? pd->users : 1U});
    to.put(RDMA_NLDEV_ATTR_RES_PDN, entry.number);
    if (pd)
        to.put(RDMA_NLDEV_ATTR_RES_CTXN, pd->context->handle);
    fill_owner(entry, to);
    return true;
}

// fill_res_ctx_entry()
bool Handler::fill_context(const Entry &entry, Attributes &to) {
    to.put(RDMA_NLDEV_ATTR_RES_CTXN, entry.number);
    fill_owner(entry, to);
    return true;
}

// fill_res_srq_qps(): ranges of numbers, as many as an attribute has room for
void Handler::fill_qps_of(const Srq &srq, Attributes &to) {
    std::vector<std::pair<uint32_t, uint32_t>> ranges;
    for (const auto &[handle, object] : fabric_.objects()) {
        if (object->kind != Object::QP || static_cast<const Qp &>(*object).srq != &srq)
            continue;
        const uint32_t number = static_cast<const Qp &>(*object).number;
        if (ranges.empty() || number != ranges.back().second + 1)
            ranges.emplace_back(number, number);
        ranges.back().second = number;
    }
    const size_t table = to.nest(RDMA_NLDEV_ATTR_RES_QP | NLA_F_NESTED);
    for (const auto &[first, last] : ranges) {
        if (to.bytes.size() > MAX_MESSAGE_BYTES)
            break;
        const size_t entry = to.nest(RDMA_NLDEV_ATTR_RES_QP_ENTRY | NLA_F_NESTED);
        if (first == last) {
            to.put(RDMA_NLDEV_ATTR_RES_LQPN, first);
        } else {
            to.put(RDMA_NLDEV_ATTR_MIN_RANGE, first);
            to.put(RDMA_NLDEV_ATTR_MAX_RANGE, last);
        }
        to.unnest(entry);
    }
    to.unnest(table);
}

// fill_res_srq_entry()
bool Handler::fill_srq(const Entry &entry, Attributes &to) {
    const auto &srq = static_cast<const Srq &>(*entry.object);
    to.put(RDMA_NLDEV_ATTR_RES_SRQN, entry.number);
    to.put(RDMA_NLDEV_ATTR_RES_TYPE, uint8_t{0}); // IB_SRQT_BASIC
    to.put(RDMA_NLDEV_ATTR_RES_PDN, srq.pd->handle);
    fill_qps_of(srq, to);
    fill_owner(entry, to);
    return true;
}

// res_get_common_doit()
int Handler::get_resource(const Request &request) {
    const Resource &resource = *resource_;
    const Device *const device = device_of(request);
    const bool is_of_port = request.has(RDMA_NLDEV_ATTR_PORT_INDEX);
    if (!device || !request.has(resource.id) || (is_of_port && !has_port(request)) ||
        is_of_port == resource.is_of_device)
        return EINVAL;
    const std::vector<Entry> entries = entries_of(resource, *device);
    const auto found = std::ranges::find_if(
        entries, [&](const Entry &each) { return each.number == request.number(resource.id); });
    if (found == entries.end())
        return ENOENT;
    begin(*device);
    return (this->*resource.fill)(*found, made_) || !is_of_port ? end() : EAGAIN;
}

// res_get_common_dumpit(): without entries, there is no message.
int Handler::dump_resource(const Request &request, const Resource &resource) {
    const Device *const device = device_of(request);
    const bool is_of_port = request.has(RDMA_NLDEV_ATTR_PORT_INDEX);
    if (!device || (is_of_port && !has_port(request)))
        return EINVAL;
    return dump_entries(resource, *device, is_of_port);
}

int Handler::dump_entries(const Resource &resource, const Device &device, bool is_of_port) {
    const std::vector<Entry> entries = entries_of(resource, device);
    uint32_t i = request_.start;
    while (i < entries.size() && messages_.size() < MAX_REPLY) {
        begin(device);
        const size_t table = made_.nest(resource.table);
        for (; i < entries.size() && made_.bytes.size() < MAX_MESSAGE_BYTES / 2; i++) {
            const size_t entry = made_.nest(resource.entry);
            if ((this->*resource.fill)(entries[i], made_) || !is_of_port)
                made_.unnest(entry);
            else
                made_.bytes.resize(entry);
        }
        made_.unnest(table);
        end();
    }
    next_ = i < entries.size() ? i : 0;
    return 0;
}

// ---- statistics ----------------------------------------------------------------------------

bool is_hardware_counter(const DriverCounter &counter) {
    return counter.group == "hw_counters";
}
bool has_hardware_counters(const Device &device) {
    return std::ranges::any_of(counters_of(*device.profile), is_hardware_counter);
}

// The hardware counters with their values, or with their numbers.
void Handler::put_counters(const Device &device, bool has_values) {
    uint32_t index = 0;
    fabric_.count_attempts();
    const size_t table = made_.nest(RDMA_NLDEV_ATTR_STAT_HWCOUNTERS | NLA_F_NESTED);
    for (const DriverCounter &counter : counters_of(*device.profile)) {
        if (!is_hardware_counter(counter))
            continue;
        const size_t entry = made_.nest(RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY | NLA_F_NESTED);
        made_.put_string(RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME, counter.name);
        if (has_values)
            made_.put(RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE,
                      fabric_.read_counter(device, counter));
        else
            made_.put(RDMA_NLDEV_ATTR_STAT_HWCOUNTER_INDEX, index++);
        made_.unnest(entry);
    }
    made_.unnest(table);
}

// nldev_stat_get_doit()
int Handler::get_statistics(const Request &request) {
    const Device *const device = device_of(request);
    const bool is_of_qps = request.number(RDMA_NLDEV_ATTR_STAT_RES) == RDMA_NLDEV_ATTR_RES_QP;
    if (!device || !has_port(request))
        return EINVAL;
    begin(*device);
    made_.put(RDMA_NLDEV_ATTR_PORT_INDEX, PORT);
    if (is_of_qps) { // stat_get_doit_qp(): no counter is bound to a QP
        if (request.has(RDMA_NLDEV_ATTR_STAT_COUNTER_ID))
            return ENOENT;
        if (!request.has(RDMA_NLDEV_ATTR_STAT_MODE))
            return EINVAL;
        made_.put(RDMA_NLDEV_ATTR_STAT_MODE, uint32_t{RDMA_COUNTER_MODE_NONE});
        return end();
    }
    if (request.has(RDMA_NLDEV_ATTR_STAT_RES) || !has_hardware_counters(*device))
        return EINVAL;
    put_counters(*device, true);
    return end();
}

// nldev_stat_get_dumpit()
int Handler::dump_statistics(const Request &request) {
    static constexpr Resource REGIONS = {RDMA_NLDEV_CMD_STAT_GET,
                                         "mr",
                                         Object::MR,
                                         RDMA_NLDEV_ATTR_RES_MR,
                                         RDMA_NLDEV_ATTR_RES_MR_ENTRY,
                                         RDMA_NLDEV_ATTR_RES_MRN,
                                         true,
                                         &Handler::fill_mr_statistics};
    switch (request.number(RDMA_NLDEV_ATTR_STAT_RES)) {
    case RDMA_NLDEV_ATTR_RES_QP:
        return device_of(request) ? 0 : EINVAL; // no counter is bound to a QP
    case RDMA_NLDEV_ATTR_RES_MR:
        return dump_resource(request, REGIONS);
    default:
        return EINVAL;
    }
}

// nldev_stat_get_counter_status_doit()
int Handler::get_counter_names(const Request &request) {
    const Device *const device = device_of(request);
    if (!device || !has_port(request) || !has_hardware_counters(*device))
        return EINVAL;
    begin(*device);
    made_.put(RDMA_NLDEV_ATTR_PORT_INDEX, PORT);
    put_counters(*device, false);
    return end();
}

// nldev_stat_set_doit(): the fabric binds no counters to QPs, and has no optional ones.
int Handler::set_statistics(const Request &request) {
    return device_of(request) && has_port(request) &&
                   (request.has(RDMA_NLDEV_ATTR_STAT_MODE) ||
                    request.has(RDMA_NLDEV_ATTR_STAT_HWCOUNTERS))
               ? EOPNOTSUPP
               : EINVAL;
}

} // namespace

// ---- attributes ----------------------------------------------------------------------------

void Attributes::put(unsigned type, const void *data, size_t size) {
    const nlattr head = {static_cast<uint16_t>(NLA_HDRLEN + size), static_cast<uint16_t>(type)};
    const size_t at = bytes.size();
    bytes.resize(at + NLA_HDRLEN + NLA_ALIGN(size));
    memcpy(bytes.data() + at, &head, sizeof(head));
    if (size > 0)
        memcpy(bytes.data() + at + NLA_HDRLEN, data, size);
}

size_t Attributes::nest(unsigned type) {
    const size_t start = bytes.size();
    put(type, nullptr, 0);
    return start;
}

void Attributes::unnest(size_t start) {
    const auto length = static_cast<uint16_t>(bytes.size() - start);
    memcpy(bytes.data() + start, &length, sizeof(length));
}

int rdma_netlink(Fabric &fabric, const Netlink &request, std::span<const std::byte> message,
                 std::vector<std::byte> &messages, uint32_t &next) {
    nlmsghdr head;
    if (!fabric.host(request.host) || message.size() < NLMSG_HDRLEN)
        return EINVAL;
    memcpy(&head, message.data(), sizeof(head));
    if (head.nlmsg_len < NLMSG_HDRLEN || head.nlmsg_len > message.size())
        return EINVAL;
    return Handler(fabric, request, messages, next)
        .execute(head, message.subspan(NLMSG_HDRLEN, head.nlmsg_len - NLMSG_HDRLEN));
}

} // namespace sim
