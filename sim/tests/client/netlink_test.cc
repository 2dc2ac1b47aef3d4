// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// netlink_test.cc -- counters, and the requests of RDMA netlink.

#include "pair.hh"

#include <cerrno>
#include <linux/netlink.h>
#include <random>
#include <rdma/rdma_netlink.h>
#include <vector>

namespace {

using namespace sim;

// ---- counters and netlink ------------------------------------------------------------------

struct Counted {
    const char *name;
    uint64_t of_a, of_b;
    const char *group = "hw_counters";
};

void expect_counters(const Pair &pair, std::initializer_list<Counted> rows) {
    for (const Counted &row : rows) {
        print_message("%s\n", row.name);
        assert_int_equal(counter_of(pair.a, row.name, row.group), row.of_a);
        assert_int_equal(counter_of(pair.b, row.name, row.group), row.of_b);
    }
}

// Packets have 1024 bytes. Linux 6.1, drivers/infiniband/sw/rxe: rxe_req.c, init_req_packet()
// requests one acknowledgement for each message; a read has a response for each packet.
void packets_and_messages_are_counted_on_soft_roce(void **) {
    Pair pair;
    pair.receive(4096);
    assert_int_equal(pair.post(IBV_WR_SEND, 3000), 0);
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 1024), 0);
    assert_int_equal(pair.post(IBV_WR_RDMA_READ, 4096), 0);
    assert_int_equal(pair.post(IBV_WR_ATOMIC_FETCH_AND_ADD, 8), 0);
    expect_counters(pair, {{"sent_pkts", 3 + 1 + 1 + 1, 1 + 1 + 4 + 1},
                           {"rcvd_pkts", 1 + 1 + 4 + 1, 3 + 1 + 1 + 1},
                           {"rdma_sends", 1, 0},
                           {"rdma_recvs", 0, 1},
                           {"rcvd_rnr_err", 0, 0},
                           {"completer_retry_err", 0, 0}});
    pair.direct.fabric().set_port(1, 0, false);
    pair.direct.fabric().set_port(1, 0, true);
    expect_counters(pair, {{"link_downed", 1, 0}});
}

// rxe_req.c, rxe_requester(): a request with a local error is not sent.
void request_with_a_local_error_is_not_counted(void **) {
    Pair pair;
    const auto change = [](ibv_send_wr &, ibv_sge &sge) { sge.lkey++; };
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8, change), 0);
    assert_int_not_equal(pair.a.poll().status, IBV_WC_SUCCESS);
    expect_counters(pair, {{"sent_pkts", 0, 0}, {"rcvd_pkts", 0, 0}});
}

// Words of 4 bytes: Linux, Documentation/ABI/stable/sysfs-class-infiniband, port_xmit_data. The
// headers of InfiniBand have 26 bytes in each packet, and RETH 16, AETH 4.
void words_of_packets_are_counted_on_infiniband(void **) {
    Pair pair({.device = "mlx5-ib"});
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 2048), 0);
    expect_counters(pair,
                    {{"port_xmit_packets", 2, 1, "counters"},
                     {"port_rcv_packets", 1, 2, "counters"},
                     {"port_xmit_data", (2048 + 2 * 26 + 16) / 4, (26 + 4) / 4, "counters"},
                     {"rx_write_requests", 0, 1},
                     {"rx_read_requests", 0, 0}});
}

// The retries of a missing receive are 1.28 ms apart, those of a missing response 67.1 ms.
void attempts_without_an_effect_are_counted(void **) {
    {
        Pair pair({.rnr_retry = 7});
        assert_int_equal(pair.post(IBV_WR_SEND, 8), 0);
        expect_counters(pair, {{"rcvd_rnr_err", 1, 0}, {"send_rnr_err", 0, 1}});
        pair.direct.advance(3 * 1'280'000);
        expect_counters(pair, {{"rcvd_rnr_err", 4, 0}, {"sent_pkts", 4, 4}});
        pair.receive(64);
        expect_counters(pair, {{"rcvd_rnr_err", 4, 0}, {"sent_pkts", 5, 5}});
    }
    {
        Pair pair({.rnr_retry = 2});
        assert_int_equal(pair.post(IBV_WR_SEND, 8), 0);
        pair.direct.advance(SECOND);
        expect_counters(pair, {{"rcvd_rnr_err", 3, 0}, {"retry_rnr_exceeded_err", 1, 0}});
    }
    Pair pair({.retry_cnt = 3});
    pair.direct.fabric().cut(1, 2, true);
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8), 0);
    pair.direct.advance(150'000'000);
    expect_counters(pair, {{"completer_retry_err", 2, 0}, {"sent_pkts", 3, 0}});
    pair.direct.advance(SECOND);
    expect_counters(pair, {{"completer_retry_err", 3, 0},
                           {"sent_pkts", 4, 0},
                           {"rcvd_pkts", 0, 0},
                           {"retry_exceeded_err", 1, 0}});
}

// A request without a receive is repeated after 1.28 ms, and one without a response after 67.1
// ms. Each cause that begins counts its own attempts, from its beginning.
void attempts_are_those_of_their_cause(void **) {
    Pair pair({.retry_cnt = 7});
    assert_int_equal(pair.post(IBV_WR_SEND, 8), 0);
    pair.direct.advance(2 * 1'280'000);
    expect_counters(pair, {{"rcvd_rnr_err", 3, 0}, {"completer_retry_err", 0, 0}});
    pair.direct.fabric().cut(1, 2, true);
    pair.direct.advance(2 * 67'200'000);
    expect_counters(
        pair, {{"rcvd_rnr_err", 3, 0}, {"completer_retry_err", 2, 0}, {"sent_pkts", 6, 3}});
    pair.direct.fabric().cut(1, 2, false);
    pair.direct.advance(1'280'000);
    expect_counters(pair, {{"rcvd_rnr_err", 5, 0}, {"completer_retry_err", 2, 0}});
    pair.receive(64);
    pair.expect(IBV_WC_SUCCESS);
    expect_counters(pair, {{"rcvd_rnr_err", 5, 0}, {"sent_pkts", 9, 6}});
}

// The names of the counters define the meaning.
void errors_are_counted_by_their_status_on_mlx5(void **) {
    Pair pair({.device = "mlx5"});
    const auto change = [](ibv_send_wr &wr, ibv_sge &) { wr.wr.rdma.rkey ^= 0xff00; };
    pair.receive(64);
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8, change), 0);
    pair.expect(IBV_WC_REM_ACCESS_ERR);
    assert_int_equal(pair.post(IBV_WR_RDMA_WRITE, 8), 0);
    expect_counters(pair, {{"req_remote_access_errors", 1, 0},
                           {"resp_remote_access_errors", 0, 1},
                           {"req_cqe_error", 2, 0},
                           {"req_cqe_flush_error", 1, 0},
                           {"resp_cqe_flush_error", 0, 1},
                           {"out_of_buffer", 0, 0}});
}

// A request of NETLINK_RDMA.
struct NetlinkRequest {
    std::vector<char> bytes = std::vector<char>(NLMSG_HDRLEN);
    std::vector<char> reply = std::vector<char>(MAX_MESSAGE);
    size_t length = 0;

    NetlinkRequest(unsigned operation, unsigned flags,
                   std::initializer_list<std::pair<unsigned, uint32_t>> attributes = {}) {
        nlmsghdr head = {};
        head.nlmsg_len = static_cast<uint32_t>(bytes.size());
        head.nlmsg_type = static_cast<uint16_t>(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, operation));
        head.nlmsg_flags = static_cast<uint16_t>(NLM_F_REQUEST | flags);
        memcpy(bytes.data(), &head, sizeof(head));
        for (const auto &[type, value] : attributes)
            add(type, &value, sizeof(value));
    }
    void add(unsigned type, const void *value, size_t size) {
        const nlattr head = {static_cast<uint16_t>(NLA_HDRLEN + size),
                             static_cast<uint16_t>(type)};
        const auto append = [this](const void *data, size_t count) {
            const auto *const first = static_cast<const char *>(data);
            bytes.insert(bytes.end(), first, first + count);
        };
        append(&head, sizeof(head));
        append(value, size);
        bytes.resize(NLMSG_ALIGN(bytes.size()));
        const auto all = static_cast<uint32_t>(bytes.size());
        memcpy(bytes.data() + offsetof(nlmsghdr, nlmsg_len), &all, sizeof(all));
    }
    void add(unsigned type, const char *text) { add(type, text, strlen(text) + 1); }
    void add(unsigned type, uint32_t value) { add(type, &value, sizeof(value)); }
    int call(unsigned host, bool is_admin = false) {
        Netlink request = {};
        request.host = host;
        request.is_admin = is_admin;
        rdma_sim_message message{&request,
                                 sizeof(request),
                                 bytes.data(),
                                 bytes.size(),
                                 reply.data(),
                                 reply.size(),
                                 0,
                                 -1};
        const int error = rdma_sim_call(&message);
        length = error ? 0 : message.length - sizeof(Netlink::Reply);
        return error;
    }
    // The values of all attributes of 4 bytes with this type.
    std::vector<uint32_t> values_of(unsigned type) const {
        std::vector<uint32_t> found;
        for (size_t at = 0; at + 8 <= sizeof(Netlink::Reply) + length; at += 4) {
            nlattr head;
            uint32_t value;
            memcpy(&head, reply.data() + at, sizeof(head));
            memcpy(&value, reply.data() + at + 4, sizeof(value));
            if (head.nla_len == 8 && head.nla_type == type)
                found.push_back(value);
        }
        return found;
    }
    // Returns the number of messages. Each one, and each attribute of it, is complete.
    unsigned messages() const {
        unsigned count = 0;
        size_t at = sizeof(Netlink::Reply);
        for (nlmsghdr head; at < sizeof(Netlink::Reply) + length; at += head.nlmsg_len) {
            memcpy(&head, reply.data() + at, sizeof(head));
            assert_in_range(head.nlmsg_len, sizeof(head), sizeof(Netlink::Reply) + length - at);
            check_attributes(at + sizeof(head), head.nlmsg_len - sizeof(head));
            count++;
        }
        return count;
    }
    void check_attributes(size_t at, size_t size) const {
        const size_t end = at + size;
        for (nlattr head; at < end; at += NLA_ALIGN(head.nla_len)) {
            memcpy(&head, reply.data() + at, sizeof(head));
            assert_in_range(head.nla_len, sizeof(head), end - at);
        }
        assert_int_equal(at, end);
    }
};

void netlink_refuses_what_the_kernel_refuses(void **) {
    Pair pair;
    constexpr auto INDEX = RDMA_NLDEV_ATTR_DEV_INDEX, PORT = RDMA_NLDEV_ATTR_PORT_INDEX;
    const struct {
        const char *what;
        NetlinkRequest request;
        int error;
        bool is_admin = false;
    } rows[] = {
        {"a device", {RDMA_NLDEV_CMD_GET, 0, {{INDEX, 0}}}, 0},
        {"all devices", {RDMA_NLDEV_CMD_GET, NLM_F_DUMP}, 0},
        {"no device", {RDMA_NLDEV_CMD_GET, 0}, EINVAL},
        {"another device", {RDMA_NLDEV_CMD_GET, 0, {{INDEX, 1}}}, EINVAL},
        {"a port", {RDMA_NLDEV_CMD_PORT_GET, 0, {{INDEX, 0}, {PORT, 1}}}, 0},
        {"another port", {RDMA_NLDEV_CMD_PORT_GET, 0, {{INDEX, 0}, {PORT, 2}}}, EINVAL},
        {"a dump that does not exist", {RDMA_NLDEV_CMD_SYS_GET, NLM_F_DUMP}, EINVAL},
        {"an unknown command", {99, 0}, EINVAL},
        {"a QP without a port",
         {RDMA_NLDEV_CMD_RES_QP_GET, 0, {{INDEX, 0}, {RDMA_NLDEV_ATTR_RES_LQPN, 17}}},
         EINVAL},
        {"a QP",
         {RDMA_NLDEV_CMD_RES_QP_GET,
          0,
          {{INDEX, 0}, {PORT, 1}, {RDMA_NLDEV_ATTR_RES_LQPN, pair.a.qp->qp_num}}},
         0},
        {"the QP of another host",
         {RDMA_NLDEV_CMD_RES_QP_GET,
          0,
          {{INDEX, 0}, {PORT, 1}, {RDMA_NLDEV_ATTR_RES_LQPN, pair.b.qp->qp_num}}},
         ENOENT},
        {"statistics", {RDMA_NLDEV_CMD_STAT_GET, 0, {{INDEX, 0}, {PORT, 1}}}, 0},
        {"an attribute that strict commands do not know",
         {RDMA_NLDEV_CMD_STAT_GET, 0, {{INDEX, 0}, {PORT, 1}, {999, 0}}},
         EINVAL},
        {"an attribute that others ignore", {RDMA_NLDEV_CMD_GET, 0, {{INDEX, 0}, {999, 0}}}, 0},
        {"a change without the privilege", {RDMA_NLDEV_CMD_SET, 0, {{INDEX, 0}}}, EPERM},
        {"a change", {RDMA_NLDEV_CMD_SET, 0, {{INDEX, 0}}}, EOPNOTSUPP, true},
    };
    for (auto row : rows) {
        print_message("%s\n", row.what);
        assert_int_equal(row.request.call(1, row.is_admin), row.error);
        assert_int_equal(row.request.messages(), row.error == 0);
    }
    NetlinkRequest too_long(RDMA_NLDEV_CMD_GET, 0, {{INDEX, 0}});
    too_long.bytes[NLMSG_HDRLEN] = 12; // nla_len exceeds the message
    assert_int_equal(too_long.call(1), EINVAL);
    uint32_t text;
    memcpy(&text, "uver", sizeof(text)); // without a final zero
    NetlinkRequest not_ended(RDMA_NLDEV_CMD_GET_CHARDEV, 0,
                             {{RDMA_NLDEV_ATTR_CHARDEV_TYPE, text}});
    assert_int_equal(not_ended.call(1), EINVAL);
}

// Linux 7.3, drivers/infiniband/core/nldev.c, nldev_newlink() and nldev_dellink();
// sw/rxe/rxe.c, rxe_newlink(): a network device has one RDMA device.
void link_is_added_and_deleted_as_by_the_kernel(void **) {
    static const struct {
        const char *name, *interface; // NULL: the attribute is missing
        int error;
    } rows[] = {
        {"rxe9", "sim0", EEXIST},  {"rxe9", "sim1", ENODEV}, {"rxe9", "rxe0", ENODEV},
        {"rxe%d", "sim0", EINVAL}, {"", "sim0", EINVAL},     {nullptr, "sim0", EINVAL},
        {"rxe9", nullptr, EINVAL},
    };
    for (const char *const device : {"rxe", "siw", "mlx5"}) {
        Pair pair({.device = device});
        NetlinkRequest request(RDMA_NLDEV_CMD_DELLINK, 0, {{RDMA_NLDEV_ATTR_DEV_INDEX, 0}});
        assert_int_equal(request.call(1, true), strcmp(device, "mlx5") ? EOPNOTSUPP : EINVAL);
    }
    Pair pair;
    for (const auto &row : rows)
        for (const bool has_type : {true, false}) {
            NetlinkRequest request(RDMA_NLDEV_CMD_NEWLINK, 0);
            if (row.name)
                request.add(RDMA_NLDEV_ATTR_DEV_NAME, row.name);
            if (row.interface)
                request.add(RDMA_NLDEV_ATTR_NDEV_NAME, row.interface);
            if (has_type)
                request.add(RDMA_NLDEV_ATTR_LINK_TYPE, "rxe");
            assert_int_equal(request.call(1, true), has_type ? row.error : EINVAL);
            assert_int_equal(request.call(1), EPERM);
        }
}

// Linux 7.3, drivers/infiniband/core/nldev.c, nldev_get_chardev(), core/uverbs_main.c and
// core/ucma.c: a device has a character device of verbs, and the host one of the connection
// manager.
void character_device_is_that_of_its_client(void **) {
    static const struct {
        const char *type;
        bool has_device, has_port;
        int error;
    } rows[] = {
        {"uverbs", true, false, 0},           {"uverbs", true, true, EINVAL},
        {"uverbs", false, false, EOPNOTSUPP}, {"rdma_cm", false, false, 0},
        {"rdma_cm", true, false, EOPNOTSUPP}, {"rdma_cm", false, true, EINVAL},
        {"umad", true, true, EOPNOTSUPP},     {nullptr, true, false, EINVAL},
    };
    Pair pair;
    for (const auto &row : rows) {
        NetlinkRequest request(RDMA_NLDEV_CMD_GET_CHARDEV, 0);
        if (row.has_device)
            request.add(RDMA_NLDEV_ATTR_DEV_INDEX, uint32_t{0});
        if (row.has_port)
            request.add(RDMA_NLDEV_ATTR_PORT_INDEX, uint32_t{1});
        if (row.type)
            request.add(RDMA_NLDEV_ATTR_CHARDEV_TYPE, row.type);
        print_message("%s %d %d\n", row.type ? row.type : "none", row.has_device, row.has_port);
        assert_int_equal(request.call(1), row.error);
    }
}

// Linux 7.3, drivers/infiniband/core/nldev.c, fill_res_mr_entry()
void key_of_a_region_is_shown_to_administrators_only(void **) {
    Pair pair;
    for (const bool is_admin : {false, true}) {
        NetlinkRequest request(RDMA_NLDEV_CMD_RES_MR_GET, NLM_F_DUMP,
                               {{RDMA_NLDEV_ATTR_DEV_INDEX, 0}});
        assert_int_equal(request.call(1, is_admin), 0);
        assert_int_equal(request.values_of(RDMA_NLDEV_ATTR_RES_MRN).size(), 1);
        const std::vector<uint32_t> keys(is_admin, pair.a.mr->rkey);
        assert_true(request.values_of(RDMA_NLDEV_ATTR_RES_RKEY) == keys);
        assert_true(request.values_of(RDMA_NLDEV_ATTR_RES_LKEY) == keys);
    }
}

// core/cma.c, cma_listen_on_dev(): a listener of any address is on each device of its host.
void listener_of_any_address_is_listed_on_its_host(void **) {
    Pair pair;
    pair.direct.use_host(2);
    CmCreateChannel channel;
    CmCreateChannel::Reply made;
    assert_int_equal(call(channel, made), 0);
    CmCreate create = {};
    CmCreate::Reply id;
    create.channel = made.channel;
    create.port_space = RDMA_PS_TCP;
    create.qp_type = IBV_QPT_RC;
    assert_int_equal(call(create, id), 0);
    CmBind bind;
    CmRoute route;
    bind.id = id.id;
    bind.address = {};
    bind.address.v4.sin_family = AF_INET;
    bind.address.v4.sin_port = htons(7471);
    assert_int_equal(call(bind, route), 0);
    CmListen listen = {};
    listen.id = id.id;
    assert_int_equal(call(listen, route), 0);
    for (const unsigned host : {1U, 2U}) {
        NetlinkRequest request(RDMA_NLDEV_CMD_RES_CM_ID_GET, NLM_F_DUMP,
                               {{RDMA_NLDEV_ATTR_DEV_INDEX, 0}});
        assert_int_equal(request.call(host), 0);
        assert_int_equal(request.values_of(RDMA_NLDEV_ATTR_RES_CM_IDN).size(), host == 2);
    }
}

// Each message of a dump has room for some of the QPs.
void many_objects_are_listed_in_parts_by_netlink(void **) {
    Pair pair;
    std::vector<ibv_qp *> made;
    ibv_qp_init_attr attr = {};
    attr.send_cq = attr.recv_cq = pair.a.cq;
    attr.cap = {1, 1, 1, 1, 0};
    attr.qp_type = IBV_QPT_RC;
    for (unsigned i = 0; i < 2000; i++)
        made.push_back(ibv_create_qp(pair.a.pd, &attr));
    NetlinkRequest request(RDMA_NLDEV_CMD_RES_QP_GET, NLM_F_DUMP,
                           {{RDMA_NLDEV_ATTR_DEV_INDEX, 0}});
    unsigned parts = 0;
    std::vector<uint32_t> found;
    Netlink asked = {};
    asked.host = 1;
    do {
        rdma_sim_message message{&asked,
                                 sizeof(asked),
                                 request.bytes.data(),
                                 request.bytes.size(),
                                 request.reply.data(),
                                 request.reply.size(),
                                 0,
                                 -1};
        assert_int_equal(rdma_sim_call(&message), 0);
        request.length = message.length - sizeof(Netlink::Reply);
        assert_true(request.messages() > 1);
        for (const uint32_t number : request.values_of(RDMA_NLDEV_ATTR_RES_LQPN))
            found.push_back(number);
        memcpy(&asked.start, request.reply.data(), sizeof(asked.start));
        parts++;
    } while (asked.start != 0);
    assert_true(parts > 1);
    assert_int_equal(found.size(), made.size() + 2); // and that of the pair, and of ib_core
    for (ibv_qp *const qp : made) {
        assert_int_equal(std::count(found.begin(), found.end(), qp->qp_num), 1);
        assert_int_equal(ibv_destroy_qp(qp), 0);
    }
}

// Random bytes after a valid header.
void malformed_netlink_requests_are_refused(void **) {
    Pair pair;
    std::mt19937 generator(1);
    for (unsigned i = 0; i < 50'000; i++) {
        NetlinkRequest request(generator() % 32, generator() % 2 ? NLM_F_DUMP : 0,
                               {{RDMA_NLDEV_ATTR_DEV_INDEX, generator() % 2},
                                {generator() % (RDMA_NLDEV_ATTR_MAX + 2), generator()}});
        for (unsigned change = 0; change < 3; change++)
            if (generator() % 2)
                request.bytes[16 + generator() % (request.bytes.size() - 16)] =
                    static_cast<char>(generator());
        if (generator() % 4 == 0) // nlmsg_len is larger
            request.bytes.resize(generator() % request.bytes.size());
        const int error = request.call(1, generator() % 2);
        assert_true(error >= 0);
        (void)request.messages();
    }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(packets_and_messages_are_counted_on_soft_roce),
        cmocka_unit_test(request_with_a_local_error_is_not_counted),
        cmocka_unit_test(words_of_packets_are_counted_on_infiniband),
        cmocka_unit_test(attempts_without_an_effect_are_counted),
        cmocka_unit_test(attempts_are_those_of_their_cause),
        cmocka_unit_test(errors_are_counted_by_their_status_on_mlx5),
        cmocka_unit_test(netlink_refuses_what_the_kernel_refuses),
        cmocka_unit_test(link_is_added_and_deleted_as_by_the_kernel),
        cmocka_unit_test(character_device_is_that_of_its_client),
        cmocka_unit_test(key_of_a_region_is_shown_to_administrators_only),
        cmocka_unit_test(listener_of_any_address_is_listed_on_its_host),
        cmocka_unit_test(many_objects_are_listed_in_parts_by_netlink),
        cmocka_unit_test(malformed_netlink_requests_are_refused),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
