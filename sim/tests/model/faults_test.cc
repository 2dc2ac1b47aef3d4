// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// faults_test.cc -- each fault of the table, on each device that can have it, by time and by
// call: two hosts do the same work with it and without, and the results differ.

#include "../../direct/direct.hh"
#include "../../explore/choices.hh"
#include "../../model/faults.hh"
#include "../../protocol/protocol_cm.hh"
#include "../client/connect_qp.hh"

#include <arpa/inet.h>
#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <span>

extern "C" {
#include <csetjmp>
#include <cstdarg>

#include <cmocka.h>
}

namespace {

using namespace sim;

constexpr uint64_t MS = 1'000'000, INTERVAL = 100 * MS;
constexpr unsigned ROUNDS = 7, FAULT_ROUND = 4;

struct Side {
    unsigned host;
    ibv_context *context;
    ibv_pd *pd;
    ibv_cq *cq;
    ibv_qp *qp, *ud;
    ibv_mr *mr;
    ibv_srq *srq = nullptr; // for its events
    ibv_ah *ah = nullptr;
    ibv_gid gid{};
    char memory[256] = {};
};

// The programs of the hosts do their work, and write the results of the calls into `log`.
class Work : Machines {
  public:
    Work(const sim_profile &device, const std::vector<Fault> &faults);
    ~Work() override;
    std::string log;

  private:
    sim::Fabric &fabric() override { return direct_.fabric(); }
    // What runs programs gets these.
    void kill(const Fault &fault) override { note("kill", fault.hosts[0]); }
    void start(const Fault &fault) override { note("start", fault.hosts[0]); }
    void suspend(const Fault &fault, bool is_suspended) override {
        note(is_suspended ? "suspend" : "continue", fault.hosts[0]);
    }
    void power_off(const Fault &fault) override {
        fabric().set_power(fault.hosts[0], false);
        note("power off", fault.hosts[0]);
    }
    void set_clock(unsigned, uint64_t ahead) override { note("clock", ahead); }
    void note(const char *what, uint64_t value) {
        log += std::string(what) + " " + std::to_string(value) + "\n";
    }
    void begin(const Fault &fault);
    void create(Side &side, unsigned host);
    void connect(Side &side, const Side &peer);
    void create_objects(Side &side);
    void receive(Side &side, ibv_qp *qp);
    void send(Side &side, const Side &peer, bool is_datagram,
              ibv_wr_opcode opcode = IBV_WR_RDMA_WRITE);
    void take_results(Side &side);
    uint32_t cm_call(unsigned host, const void *request, size_t size);
    template <class T> uint32_t cm(unsigned host, const T &request) {
        return cm_call(host, &request, sizeof(request));
    }
    void cm_connect();
    void take_cm_events(unsigned host);

    const sim_profile &device_;
    const std::vector<Fault> &faults_;
    Direct direct_;
    CallFaults call_faults_;
    Side sides_[2];
    Caller callers_[2]; // of the connection manager
    uint32_t channels_[2] = {}, active_ = 0;
};

Options options_of(const sim_profile &device) {
    Options options;
    options.profile = &device;
    return options;
}

void Work::begin(const Fault &fault) {
    apply(*this, fault);
    if (fault.lasts != 0)
        fabric().at(fabric().now() + fault.lasts, [this, &fault] { end(*this, fault); });
}

void Work::create(Side &side, unsigned host) {
    direct_.use_host(side.host = host);
    ibv_device **const list = ibv_get_device_list(nullptr);
    side.context = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    fcntl(side.context->async_fd, F_SETFL, O_NONBLOCK);
    assert_int_equal(ibv_query_gid(side.context, 1, 0, &side.gid), 0);
    side.pd = ibv_alloc_pd(side.context);
    side.cq = ibv_create_cq(side.context, 128, nullptr, nullptr, 0);
    side.mr =
        ibv_reg_mr(side.pd, side.memory, sizeof(side.memory),
                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    ibv_qp_init_attr attr{};
    attr.send_cq = attr.recv_cq = side.cq;
    attr.cap = {32, 32, 1, 1, 0};
    attr.qp_type = IBV_QPT_RC;
    side.qp = ibv_create_qp(side.pd, &attr);
    assert_non_null(side.qp);
    ibv_srq_init_attr srq{};
    srq.attr = {4, 1, 0};
    side.srq = device_.has_srq ? ibv_create_srq(side.pd, &srq) : nullptr;
    attr.qp_type = IBV_QPT_UD;
    side.ud = device_.has_ud ? ibv_create_qp(side.pd, &attr) : nullptr;
}

void Work::connect(Side &side, const Side &peer) {
    ibv_qp_attr attr{};
    direct_.use_host(side.host);
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    attr.max_dest_rd_atomic = attr.max_rd_atomic = 1;
    attr.min_rnr_timer = 14;
    attr.timeout = 14; // 67 ms
    attr.retry_cnt = 1;
    attr.rnr_retry = 7;
    if (device_.transport != SIM_IWARP)
        assert_int_equal(connect_qp(side.qp, attr, peer.gid, peer.qp->qp_num), 0);
    if (!side.ud)
        return;
    ibv_qp_attr ud{};
    ud.port_num = 1;
    ud.qkey = 5;
    ud.qp_state = IBV_QPS_INIT;
    ibv_modify_qp(side.ud, &ud, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
    ud.qp_state = IBV_QPS_RTR;
    ibv_modify_qp(side.ud, &ud, IBV_QP_STATE);
    ud.qp_state = IBV_QPS_RTS;
    assert_int_equal(ibv_modify_qp(side.ud, &ud, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
    ibv_ah_attr path{};
    path.port_num = 1;
    path.is_global = 1;
    path.grh.dgid = peer.gid;
    side.ah = ibv_create_ah(side.pd, &path);
    assert_non_null(side.ah);
}

// Each call that creates an object.
void Work::create_objects(Side &side) {
    direct_.use_host(side.host);
    const auto note_object = [&](const char *what, auto *object, auto destroy) {
        note(what, object ? 0 : static_cast<uint64_t>(errno));
        if (object)
            note("destroy", static_cast<uint64_t>(destroy(object)));
    };
    int count = 0;
    ibv_device **const list = ibv_get_device_list(&count);
    note("devices", static_cast<uint64_t>(count));
    if (count > 0)
        note_object("open", ibv_open_device(list[0]), ibv_close_device);
    ibv_free_device_list(list);
    ibv_srq_init_attr srq{};
    srq.attr = {4, 1, 0};
    ibv_qp_init_attr qp{};
    qp.send_cq = qp.recv_cq = side.cq;
    qp.cap = {1, 1, 1, 1, 0};
    qp.qp_type = IBV_QPT_RC;
    ibv_ah_attr path{};
    path.port_num = 1;
    path.is_global = 1;
    note_object("pd", ibv_alloc_pd(side.context), ibv_dealloc_pd);
    note_object("mr", ibv_reg_mr(side.pd, side.memory, 8, 0), ibv_dereg_mr);
    note_object("mw", ibv_alloc_mw(side.pd, IBV_MW_TYPE_1), ibv_dealloc_mw);
    note_object("channel", ibv_create_comp_channel(side.context), ibv_destroy_comp_channel);
    note_object("cq", ibv_create_cq(side.context, 1, nullptr, nullptr, 0), ibv_destroy_cq);
    note_object("srq", ibv_create_srq(side.pd, &srq), ibv_destroy_srq);
    note_object("qp", ibv_create_qp(side.pd, &qp), ibv_destroy_qp);
    note_object("ah", ibv_create_ah(side.pd, &path), ibv_destroy_ah);
    note("resize", static_cast<uint64_t>(ibv_resize_cq(side.cq, 128)));
    // The connection manager's calls have no wrapper here.
    CmCreate id{};
    id.channel = channels_[side.host - 1];
    id.port_space = RDMA_PS_UDP;
    id.qp_type = IBV_QPT_UD;
    CmDestroy destroy{};
    destroy.id = cm(side.host, id);
    if (destroy.id != 0)
        cm(side.host, destroy);
    CmDestroyChannel channel{};
    channel.channel = cm(side.host, CmCreateChannel{});
    if (channel.channel != 0)
        cm(side.host, channel);
    CmJoin join{};
    join.id = active_;
    cm(side.host, join);
}

void Work::receive(Side &side, ibv_qp *qp) {
    ibv_sge sge = {reinterpret_cast<uint64_t>(side.memory), sizeof(side.memory), side.mr->lkey};
    ibv_recv_wr wr{}, *bad;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    direct_.use_host(side.host);
    note("receive", static_cast<uint64_t>(ibv_post_recv(qp, &wr, &bad)));
}

void Work::send(Side &side, const Side &peer, bool is_datagram, ibv_wr_opcode opcode) {
    ibv_sge sge = {reinterpret_cast<uint64_t>(side.memory), 8, side.mr->lkey};
    ibv_send_wr wr{}, *bad;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = is_datagram ? IBV_WR_SEND : opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
    if (is_datagram) {
        wr.wr.ud = {side.ah, peer.ud->qp_num, 5};
    } else {
        wr.wr.rdma.remote_addr = reinterpret_cast<uint64_t>(peer.memory);
        wr.wr.rdma.rkey = peer.mr->rkey;
    }
    direct_.use_host(side.host);
    note("send",
         static_cast<uint64_t>(ibv_post_send(is_datagram ? side.ud : side.qp, &wr, &bad)));
}

void Work::take_results(Side &side) {
    direct_.use_host(side.host);
    ibv_wc wc{};
    int count;
    while ((count = ibv_poll_cq(side.cq, 1, &wc)) > 0)
        note(wc.status == IBV_WC_SUCCESS && wc.opcode & IBV_WC_RECV ? "received" : "completed",
             wc.status);
    note("poll", static_cast<uint64_t>(-count));
    ibv_async_event event;
    pollfd ready = {side.context->async_fd, POLLIN, 0};
    while (poll(&ready, 1, 0) == 1 && ibv_get_async_event(side.context, &event) == 0) {
        note("event", event.event_type);
        ibv_ack_async_event(&event);
    }
    take_cm_events(side.host);
}

// Returns the first word of the reply, or 0.
uint32_t Work::cm_call(unsigned host, const void *request, size_t size) {
    Reply reply;
    uint32_t word = 0;
    const int error = fabric().call(callers_[host - 1], request, size, reply);
    note("cm", static_cast<uint64_t>(error));
    if (error == 0 && reply.bytes.size() >= sizeof(word))
        memcpy(&word, reply.bytes.data(), sizeof(word));
    return word;
}

CmAddress address(const char *text) {
    CmAddress made{};
    made.v4.sin_family = AF_INET;
    made.v4.sin_port = htons(7471);
    inet_pton(AF_INET, text, &made.v4.sin_addr);
    return made;
}

void Work::cm_connect() {
    for (unsigned host : {1U, 2U}) {
        Hello hello{};
        hello.host = host;
        cm(host, hello);
        channels_[host - 1] = cm(host, CmCreateChannel{});
    }
    CmCreate id{};
    id.port_space = RDMA_PS_TCP;
    id.qp_type = IBV_QPT_RC;
    CmBind bind{};
    CmListen listen{};
    CmResolveAddr resolve{};
    CmResolveRoute route{};
    id.channel = channels_[0];
    bind.id = listen.id = cm(1, id);
    bind.address = address("10.77.0.1");
    cm(1, bind);
    cm(1, listen);
    id.channel = channels_[1];
    resolve.id = route.id = active_ = cm(2, id);
    resolve.timeout_ms = route.timeout_ms = 2000;
    resolve.destination = address("10.77.0.1");
    cm(2, resolve);
    cm(2, route);
}

// Accepts a request.
void Work::take_cm_events(unsigned host) {
    while (true) {
        TakeEvent take{};
        take.channel = channels_[host - 1];
        Reply reply;
        if (fabric().call(callers_[host - 1], &take, sizeof(take), reply))
            return;
        CmEvent event;
        memcpy(&event, reply.bytes.data() + sizeof(TakeEvent::Reply), sizeof(event));
        note(sim_cm_event_name(static_cast<int>(event.type)), host);
        CmAccept accept{};
        accept.id = event.id;
        accept.param.valid = event.type == RDMA_CM_EVENT_CONNECT_REQUEST;
        if (event.type == RDMA_CM_EVENT_CONNECT_REQUEST ||
            event.type == RDMA_CM_EVENT_CONNECT_RESPONSE)
            cm(host, accept);
    }
}

// The faults whose `time` is 0 occur before the first round, the others in their round or at
// their call.
Work::Work(const sim_profile &device, const std::vector<Fault> &faults)
    : device_(device), faults_(faults), direct_(options_of(device)) {
    for (Side &side : sides_)
        create(side, side.host = static_cast<unsigned>(&side - sides_) + 1);
    connect(sides_[0], sides_[1]);
    connect(sides_[1], sides_[0]);
    if (device.transport == SIM_IWARP) {
        Qp *ends[2];
        for (Side &side : sides_) {
            ibv_qp_attr init{};
            init.qp_state = IBV_QPS_INIT;
            init.port_num = 1;
            direct_.use_host(side.host);
            ibv_modify_qp(side.qp, &init, IBV_QP_STATE);
            ends[side.host - 1] =
                fabric().find_qp(*fabric().device(side.host, 0), side.qp->qp_num);
        }
        fabric().connect_iwarp(*ends[0], *ends[1]);
    }
    for (const Fault &fault : faults_)
        if (fault.call)
            call_faults_.add(fault);
    fabric().set_before_call([this](const Caller &caller, std::span<const std::byte> request) {
        for (const Fault *const fault : call_faults_.take(fabric(), caller, request))
            begin(*fault);
        return true;
    });
    cm_connect();
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (const Fault &fault : faults_)
            if (!fault.call && fault.time == round * INTERVAL)
                begin(fault);
        if (round == FAULT_ROUND) {
            CmConnect connect{};
            connect.id = active_;
            connect.param.valid = 1;
            cm(2, connect);
        }
        for (Side &side : sides_) {
            create_objects(side);
            for (int i = 0; side.ud && i < 2; i++)
                receive(side, side.ud);
            send(side, sides_[2 - side.host], false);
            send(side, sides_[2 - side.host], false, IBV_WR_RDMA_READ);
            if (side.ud)
                send(side, sides_[2 - side.host], true);
            take_results(side);
        }
        // Not at a multiple of the intervals of faults.
        direct_.advance(INTERVAL / 2);
        for (Side &side : sides_)
            take_results(side);
        direct_.advance(INTERVAL / 2);
    }
    for (const uint64_t more : {6'000 * MS, 6'000 * MS}) {
        direct_.advance(more);
        for (Side &side : sides_)
            take_results(side);
    }
}

Work::~Work() {
    fabric().set_before_call(nullptr);
    for (Caller &caller : callers_)
        if (caller.session)
            fabric().end_session(*caller.session);
    for (Side &side : sides_) {
        direct_.use_host(side.host);
        if (side.ah)
            ibv_destroy_ah(side.ah);
        if (side.ud)
            ibv_destroy_qp(side.ud);
        ibv_destroy_qp(side.qp);
        if (side.srq)
            ibv_destroy_srq(side.srq);
        ibv_dereg_mr(side.mr);
        ibv_destroy_cq(side.cq);
        ibv_dealloc_pd(side.pd);
        ibv_close_device(side.context);
    }
}

// The fault that must precede another one, which ends it.
const struct {
    const char *name, *before;
} ENDING[] = {{"join", "cut host1 host2"},
              {"thaw", "freeze host2"},
              {"port-up", "port-down host2"},
              {"power-on", "power-off host2"},
              {"insert", "remove host2"}};

std::string arguments_of(const FaultKind &kind) {
    std::string text = kind.max_hosts == 2 ? " host1 host2" : " host2";
    if (kind.argument == FaultArgument::TIME)
        text += " 30ms";
    return text;
}

// The actions of a kind that the device can have.
std::vector<std::string> actions_of(const FaultKind &kind, const sim_profile &device) {
    std::vector<std::string> actions;
    ExploredHosts hosts;
    hosts.devices = {&device, &device};
    hosts.programs = {1, 2};
    for (const auto &group : explored_faults(hosts, {kind.name}).groups)
        for (const Fault &fault : group.faults)
            if (fault.hosts[0] == 2 || fault.hosts.size() == 2)
                actions.push_back(fault.text);
    if (*kind.explored == '\0' || std::string_view(kind.name) == "power-off")
        actions.push_back(kind.name + arguments_of(kind));
    std::erase_if(actions, [&](const std::string &text) {
        return !is_possible(device, read_action(text));
    });
    return actions;
}

std::string result_of(const sim_profile &device, const std::vector<std::string> &texts) {
    std::vector<Fault> faults;
    for (const std::string &text : texts)
        faults.push_back(read_fault(text));
    return Work(device, faults).log;
}

bool is_unimplemented(const std::string &action, const sim_profile &device) {
    const Fault fault = read_action(action);
    if (!fault.failing)
        return false;
    const std::string_view call = fault.failing->name;
    return (call == "ibv_create_srq" && !device.has_srq) ||
           (call == "ibv_alloc_mw" && !device.has_windows) ||
           (call == "ibv_create_ah" && !device.has_ud) ||
           (call == "ibv_resize_cq" && !device.has_resize_cq);
}

void each_fault_by_time_and_by_call_has_an_effect_on_each_device(void **) {
    for (size_t i = 0; i < sim_profile_count; i++) {
        const sim_profile &device = sim_profiles[i];
        const std::string plain = result_of(device, {});
        assert_string_equal(plain.c_str(), result_of(device, {}).c_str());
        for (const FaultKind &kind : fault_kinds()) {
            std::vector<std::string> before;
            std::string without = plain;
            for (const auto &each : ENDING)
                if (std::string_view(kind.name) == each.name)
                    before = {std::string("200ms ") + each.before};
            if (!before.empty() && is_possible(device, read_fault(before[0])))
                without = result_of(device, before);
            const std::vector<std::string> actions = actions_of(kind, device);
            for (const std::string &action : actions) {
                // An error of the call itself hides the fault.
                if (is_unimplemented(action, device))
                    continue;
                for (const char *const when : {"400ms ", "host2:ibv_post_send:7 "}) {
                    std::vector<std::string> faults = before;
                    faults.push_back(when + action);
                    if (result_of(device, faults) == without)
                        fail_msg("%s: '%s%s' has no effect", device.name, when, action.c_str());
                }
            }
        }
    }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(each_fault_by_time_and_by_call_has_an_effect_on_each_device),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
