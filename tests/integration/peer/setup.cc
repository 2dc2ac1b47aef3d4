// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// setup.cc -- commands for devices, peers, configurations, shared receive queues; and the
// release of all objects

#include "call.hh"

#include <infiniband/verbs.h>
#include <unistd.h>

namespace {

void context(const Args &args) {
    const auto type =
        args.is("remote") ? RPMA_UTIL_IBV_CONTEXT_REMOTE : RPMA_UTIL_IBV_CONTEXT_LOCAL;
    fixture.device = get(rpma_utils_get_ibv_context, args.text("addr").c_str(), type);
    reply("device", ibv_get_device_name(fixture.device->device));
}

// Sets a number of a configuration if the command has its key.
template <class Cfg, class Number>
void set(const Args &args, const char *key, Cfg *cfg, int setter(Cfg *, Number)) {
    if (args.has(key))
        must(setter(cfg, args.number<Number>(key)));
}

void new_cq(const Args &args) {
    Scoped<rpma_cq_cfg, rpma_cq_cfg_delete> cfg;
    must(rpma_cq_cfg_new(&cfg.it));
    set(args, "size", cfg.it, rpma_cq_cfg_set_size);
    set(args, "vector", cfg.it, rpma_cq_cfg_set_comp_vector);
    must(rpma_cq_new(fixture.peer, cfg.it, &args.in(fixture.shared_cq, "shared_cq")));
}

void configure(const Args &args) {
    rpma_conn_cfg *&cfg = args.in(fixture.cfg, "cfg");
    must(rpma_conn_cfg_new(&cfg));
    must(rpma_conn_cfg_set_timeout(cfg, TIMEOUT_MS));
    set(args, "cq", cfg, rpma_conn_cfg_set_cq_size);
    set(args, "rcq", cfg, rpma_conn_cfg_set_rcq_size);
    set(args, "sq", cfg, rpma_conn_cfg_set_sq_size);
    set(args, "rq", cfg, rpma_conn_cfg_set_rq_size);
    set(args, "sge", cfg, rpma_conn_cfg_set_max_sge);
    set(args, "retry", cfg, rpma_conn_cfg_set_retry_count);
    set(args, "rnr", cfg, rpma_conn_cfg_set_rnr_retry_count);
    set(args, "inline", cfg, rpma_conn_cfg_set_inline_size);
    set(args, "timeout", cfg, rpma_conn_cfg_set_timeout);
    set(args, "ack", cfg, rpma_conn_cfg_set_ack_timeout);
    set(args, "rnr-timer", cfg, rpma_conn_cfg_set_rnr_timer);
    set(args, "source-port", cfg, rpma_conn_cfg_set_source_port);
    set(args, "tos", cfg, rpma_conn_cfg_set_tos);
    set(args, "shared", cfg, rpma_conn_cfg_set_compl_channel);
    if (args.has("source"))
        must(rpma_conn_cfg_set_source_addr(cfg, args.text("source").c_str()));
    if (args.has("shared_cq"))
        must(rpma_conn_cfg_set_cq(cfg, args.in(fixture.shared_cq, "shared_cq")));
    if (args.has("shared_rcq"))
        must(rpma_conn_cfg_set_rcq(cfg, args.in(fixture.shared_cq, "shared_rcq")));
    if (args.has("srq"))
        must(rpma_conn_cfg_set_srq(cfg, args.in(fixture.srq, "srq")));
}

void new_srq(const Args &args) {
    Scoped<rpma_srq_cfg, rpma_srq_cfg_delete> cfg;
    must(rpma_srq_cfg_new(&cfg.it));
    set(args, "rq", cfg.it, rpma_srq_cfg_set_rq_size);
    set(args, "rcq", cfg.it, rpma_srq_cfg_set_rcq_size);
    set(args, "sge", cfg.it, rpma_srq_cfg_set_max_sge);
    must(rpma_srq_new(fixture.peer, cfg.it, &args.in(fixture.srq, "srq")));
}

// The descriptor of a configuration with direct write to PMem as in direct=; served=1 adds the
// capabilities of the peer's device.
void peer_descriptor(const Args &args) {
    ScopedPeerCfg pcfg;
    must(rpma_peer_cfg_new(&pcfg.it));
    must(rpma_peer_cfg_set_direct_write_to_pmem(pcfg.it, args.number<bool>("direct")));
    if (args.is("served"))
        must(rpma_peer_cfg_set_served_by(pcfg.it, fixture.peer));
    std::vector<unsigned char> descriptor(get(rpma_peer_cfg_get_descriptor_size, pcfg.it));
    must(rpma_peer_cfg_get_descriptor(pcfg.it, descriptor.data()));
    reply_bytes("desc", descriptor.data(), descriptor.size());
}

void apply(const Args &args) {
    const std::vector<unsigned char> descriptor = args.bytes("desc");
    ScopedPeerCfg pcfg;
    must(rpma_peer_cfg_from_descriptor(descriptor.data(), descriptor.size(), &pcfg.it));
    must(rpma_conn_apply_remote_peer_cfg(object_of<rpma_conn>(args), pcfg.it));
}

// Packs a region.
void pack(const Args &args) {
    std::vector<unsigned char> data(UINT8_MAX);
    rpma_conn_private_data pdata = private_data(data);
    must(rpma_conn_private_data_pack(&args.in(fixture.mr, "mr"), 1, nullptr, nullptr, 0,
                                     &pdata));
    reply("packed", pdata);
}

// Unpacks a region from packed=, by default from the connection's private data.
void unpack(const Args &args) {
    std::vector<unsigned char> data = args.bytes("packed");
    const rpma_conn_private_data pdata =
        data.empty() ? get(rpma_conn_get_private_data, object_of<rpma_conn>(args))
                     : private_data(data);
    uint32_t count = 1;
    must(rpma_conn_private_data_unpack(&pdata, &args.in(fixture.remote, "rmr"), &count, nullptr,
                                       nullptr, nullptr));
}

// Deletes all objects except the context.
void release(const Args &) {
    int first = 0;
    const auto remove_all = [&first](const auto &of) {
        for (auto *&object : of.all)
            if (object != nullptr && of.remove != nullptr)
                if (const int code = of.remove(&object); first == 0)
                    first = code;
    };
    if (fixture.epoll_fd >= 0)
        close(fixture.epoll_fd);
    fixture.epoll_fd = -1;
    std::apply([&](const auto &...each) { (remove_all(each), ...); }, handle_arrays);
    must(first);
}

// The maximum numbers of SGEs per work request, and the number of completion vectors.
void device_limits(const Args &) {
    ibv_device_attr attr;
    require_system(ibv_query_device(fixture.device, &attr) == 0, "ibv_query_device");
    reply("sge", attr.max_sge);
    reply("read_sge", attr.max_sge_rd);
    reply("srq_sge", attr.max_srq_sge);
    reply("vectors", fixture.device->num_comp_vectors);
}

const Commands here{
    {"context", context},
    {"device-limits", device_limits},
    {"peer", call(rpma_peer_new)},
    {"peer-delete", call(rpma_peer_delete)},
    {"cfg", configure},
    {"srq", new_srq},
    {"srq-delete", call(rpma_srq_delete)},
    {"srq-limit", call(rpma_srq_set_limit, {"limit"})},
    {"cq-new", new_cq},
    {"cq-delete", call(rpma_cq_delete)},
    {"pcfg", peer_descriptor},
    {"apply-pcfg", apply},
    {"pack", pack},
    {"unpack", unpack},
    {"release", release},
};

} // namespace
