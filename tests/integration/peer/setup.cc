// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// setup.cc -- commands for devices, peers, configurations, shared receive queues; and the end

#include "call.hh"

#include <infiniband/verbs.h>
#include <unistd.h>

namespace {

void context(const Args &args) {
    const auto type =
        args.is("remote") ? RPMA_UTIL_IBV_CONTEXT_REMOTE : RPMA_UTIL_IBV_CONTEXT_LOCAL;
    world.device = get(rpma_utils_get_ibv_context, args.text("addr").c_str(), type);
    reply("device", ibv_get_device_name(world.device->device));
    reply("odp", get(rpma_utils_ibv_context_is_odp_capable, world.device));
}

// Sets a number of a configuration that the command gives.
template <class Cfg, class Number>
void set(const Args &args, const char *key, Cfg *cfg, int setter(Cfg *, Number)) {
    if (args.has(key))
        must(setter(cfg, args.number<Number>(key)));
}

void lend(const Args &args) {
    Scoped<rpma_cq_cfg, rpma_cq_cfg_delete> cfg;
    must(rpma_cq_cfg_new(&cfg.it));
    set(args, "size", cfg.it, rpma_cq_cfg_set_size);
    set(args, "vector", cfg.it, rpma_cq_cfg_set_comp_vector);
    must(rpma_cq_new(world.peer, cfg.it, &args.in(world.lent, "lent")));
}

void configure(const Args &args) {
    rpma_conn_cfg *&cfg = args.in(world.cfg, "cfg");
    must(rpma_conn_cfg_new(&cfg));
    must(rpma_conn_cfg_set_timeout(cfg, PATIENCE_MS));
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
    set(args, "tos", cfg, rpma_conn_cfg_set_tos);
    set(args, "flush", cfg, rpma_conn_cfg_set_flush_mode);
    set(args, "shared", cfg, rpma_conn_cfg_set_compl_channel);
    if (args.has("lent"))
        must(rpma_conn_cfg_set_cq(cfg, args.in(world.lent, "lent")));
    if (args.has("lent-rcq"))
        must(rpma_conn_cfg_set_rcq(cfg, args.in(world.lent, "lent-rcq")));
    if (args.has("srq"))
        must(rpma_conn_cfg_set_srq(cfg, args.in(world.srq, "srq")));
}

void new_srq(const Args &args) {
    Scoped<rpma_srq_cfg, rpma_srq_cfg_delete> cfg;
    must(rpma_srq_cfg_new(&cfg.it));
    set(args, "rq", cfg.it, rpma_srq_cfg_set_rq_size);
    set(args, "rcq", cfg.it, rpma_srq_cfg_set_rcq_size);
    set(args, "sge", cfg.it, rpma_srq_cfg_set_max_sge);
    must(rpma_srq_new(world.peer, cfg.it, &args.in(world.srq, "srq")));
}

// A configuration with the direct write to PMem of direct=; served=1 states what the peer
// serves.
void describe_peer(const Args &args, rpma_peer_cfg **pcfg) {
    must(rpma_peer_cfg_new(pcfg));
    must(rpma_peer_cfg_set_direct_write_to_pmem(*pcfg, args.number<bool>("direct")));
    if (args.is("served"))
        must(rpma_peer_cfg_set_served_by(*pcfg, world.peer));
}

void peer_descriptor(const Args &args) {
    ScopedPeerCfg pcfg;
    describe_peer(args, &pcfg.it);
    std::vector<unsigned char> descriptor(get(rpma_peer_cfg_get_descriptor_size, pcfg.it));
    must(rpma_peer_cfg_get_descriptor(pcfg.it, descriptor.data()));
    reply_bytes("desc", descriptor.data(), descriptor.size());
}

// Each byte's meaning as a descriptor for direct write to PMem, from byte 0 on: 0 or 1.
void peer_bytes(const Args &) {
    std::vector<unsigned char> answers;
    for (unsigned byte = 0; byte < 256; byte++) {
        const unsigned char descriptor = static_cast<unsigned char>(byte);
        ScopedPeerCfg pcfg;
        must(rpma_peer_cfg_from_descriptor(&descriptor, 1, &pcfg.it));
        answers.push_back(get(rpma_peer_cfg_get_direct_write_to_pmem, pcfg.it));
    }
    reply_bytes("direct", answers.data(), answers.size());
}

void apply(const Args &args) {
    const std::vector<unsigned char> descriptor = args.bytes("desc");
    ScopedPeerCfg pcfg;
    must(rpma_peer_cfg_from_descriptor(descriptor.data(), descriptor.size(), &pcfg.it));
    must(rpma_conn_apply_remote_peer_cfg(the<rpma_conn>(args), pcfg.it));
}

// Packs count= regions from mr= on, a configuration if direct= is given, and the bytes of
// bytes=.
void pack(const Args &args) {
    const std::vector<unsigned char> bytes = args.bytes("bytes");
    std::vector<unsigned char> data(UINT8_MAX);
    rpma_conn_private_data pdata = private_data(data);
    ScopedPeerCfg pcfg;
    if (args.has("direct"))
        describe_peer(args, &pcfg.it);
    must(rpma_conn_private_data_pack(&args.in(world.mr, "mr"),
                                     args.number<uint32_t>("count", 1), pcfg.it, bytes.data(),
                                     static_cast<uint32_t>(bytes.size()), &pdata));
    reply("packed", pdata);
}

// Unpacks packed=, or else the connection's private data: makes the remote regions from rmr=
// on, and answers with the rest. apply=1: the connection applies the configuration.
void unpack(const Args &args) {
    std::vector<unsigned char> data = args.bytes("packed");
    const rpma_conn_private_data pdata =
        data.empty() ? get(rpma_conn_get_private_data, the<rpma_conn>(args))
                     : private_data(data);
    rpma_mr_remote *&first = args.in(world.remote, "rmr");
    uint32_t count = static_cast<uint32_t>(std::end(world.remote) - &first), len = 0;
    ScopedPeerCfg pcfg;
    const void *bytes = nullptr;
    must(rpma_conn_private_data_unpack(&pdata, &first, &count, &pcfg.it, &bytes, &len));
    reply("regions", count);
    reply_bytes("bytes", bytes, len);
    if (pcfg.it == nullptr)
        return;
    bool is_stated = false, flush = false, atomic_write = false;
    must(rpma_peer_cfg_get_served(pcfg.it, &is_stated, &flush, &atomic_write));
    reply("direct", get(rpma_peer_cfg_get_direct_write_to_pmem, pcfg.it));
    reply("stated", is_stated);
    reply("flush", flush);
    reply("atomic", atomic_write);
    if (args.is("apply"))
        must(rpma_conn_apply_remote_peer_cfg(the<rpma_conn>(args), pcfg.it));
}

// Deletes all objects in the order that the manual asks for; the context stays.
void release(const Args &) {
    int first = 0;
    const auto remove = [&first](auto &&objects, auto function) {
        for (auto &object : objects)
            if (const int code = object != nullptr ? function(&object) : 0; first == 0)
                first = code;
    };
    if (world.epoll_fd >= 0)
        close(world.epoll_fd);
    world.epoll_fd = -1;
    remove(world.batch, rpma_batch_delete);
    remove(world.conn, rpma_conn_delete);
    remove(world.req, rpma_conn_req_delete);
    remove(std::span(&world.ep, 1), rpma_ep_shutdown);
    remove(world.cfg, rpma_conn_cfg_delete);
    remove(world.srq, rpma_srq_delete);
    remove(world.lent, rpma_cq_delete);
    remove(world.mr, rpma_mr_dereg);
    remove(world.remote, rpma_mr_remote_delete);
    remove(std::span(&world.peer, 1), rpma_peer_delete);
    must(first);
}

// The most elements per work request, and the number of completion vectors.
void device_limits(const Args &) {
    ibv_device_attr attr;
    must_system(ibv_query_device(world.device, &attr) == 0, "ibv_query_device");
    reply("sge", attr.max_sge);
    reply("read_sge", attr.max_sge_rd);
    reply("srq_sge", attr.max_srq_sge);
    reply("vectors", world.device->num_comp_vectors);
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
    {"lend", lend},
    {"lend-no-more", call(rpma_cq_delete)},
    {"pcfg", peer_descriptor},
    {"pcfg-bytes", peer_bytes},
    {"apply-pcfg", apply},
    {"pack", pack},
    {"unpack", unpack},
    {"release", release},
};

} // namespace
