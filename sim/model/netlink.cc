// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// netlink.cc -- NETLINK_RDMA, as Linux 6.1, drivers/infiniband/core/nldev.c: each function
// names the one that it imitates. The order of attributes is that of the kernel, too.
//
// The number of an object is its handle, because the kernel's numbers have no meaning either.

#include "netlink_handler.hh"

#include <cerrno>
#include <rdma/ib_user_ioctl_verbs.h>

namespace sim {

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
        NetlinkRequest::parse(payload, is_dump ? command.is_strict_dump : command.is_strict);
    return function && request ? (this->*function)(*request) : EINVAL;
}

// ---- devices and ports ---------------------------------------------------------------------

int Handler::get_device_with(const NetlinkRequest &request,
                             void (Handler::*fill)(const Device &)) {
    const Device *const device = device_of(request);
    if (!device)
        return EINVAL;
    begin(*device);
    (this->*fill)(*device);
    return end();
}

static bool has_firmware(const sim_profile &profile) {
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
int Handler::get_system(const NetlinkRequest &) {
    begin();
    made_.put(RDMA_NLDEV_SYS_ATTR_NETNS_MODE, uint8_t{1}); // shared
    made_.put(RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK, uint8_t{1});
    return end();
}

// enum rdma_driver_id; of other drivers, the headers of Linux 6.1 have none.
static uint32_t driver_id_of(const sim_profile &profile) {
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
int Handler::get_character_device(const NetlinkRequest &request) {
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

int Handler::not_supported(const NetlinkRequest &) {
    return EOPNOTSUPP;
}

// nldev_newlink(). Each network device has its RDMA device already.
int Handler::add_link(const NetlinkRequest &request) {
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
int Handler::delete_link(const NetlinkRequest &request) {
    const Device *const device = device_of(request);
    return device && sim_is_software(device->profile) ? EOPNOTSUPP : EINVAL;
}

// ---- statistics ----------------------------------------------------------------------------

static bool is_hardware_counter(const DriverCounter &counter) {
    return counter.group == "hw_counters";
}
static bool has_hardware_counters(const Device &device) {
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
int Handler::get_statistics(const NetlinkRequest &request) {
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
int Handler::dump_statistics(const NetlinkRequest &request) {
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
int Handler::get_counter_names(const NetlinkRequest &request) {
    const Device *const device = device_of(request);
    if (!device || !has_port(request) || !has_hardware_counters(*device))
        return EINVAL;
    begin(*device);
    made_.put(RDMA_NLDEV_ATTR_PORT_INDEX, PORT);
    put_counters(*device, false);
    return end();
}

// nldev_stat_set_doit(): the fabric binds no counters to QPs, and has no optional ones.
int Handler::set_statistics(const NetlinkRequest &request) {
    return device_of(request) && has_port(request) &&
                   (request.has(RDMA_NLDEV_ATTR_STAT_MODE) ||
                    request.has(RDMA_NLDEV_ATTR_STAT_HWCOUNTERS))
               ? EOPNOTSUPP
               : EINVAL;
}

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
