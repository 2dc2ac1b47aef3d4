// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// setup.cc -- commands for devices, peers, configurations, shared receive queues; and the end

#include "peer.hh"

#include <infiniband/verbs.h>
#include <span>
#include <unistd.h>

namespace {

void context(const Args &args) {
    int odp = 0;
    must(rpma_utils_get_ibv_context(args.text("addr").c_str(),
                                    args.is("remote") ? RPMA_UTIL_IBV_CONTEXT_REMOTE
                                                      : RPMA_UTIL_IBV_CONTEXT_LOCAL,
                                    &world.device));
    must(rpma_utils_ibv_context_is_odp_capable(world.device, &odp));
    reply("device", ibv_get_device_name(world.device->device));
    reply("odp", odp);
}

rpma_cq *&lent_queue(const Args &args, const char *key) {
    return world.lent[args.slot(key, MAX_OTHERS)];
}

void lend(const Args &args) {
    Scoped<rpma_cq_cfg, rpma_cq_cfg_delete> cfg;
    must(rpma_cq_cfg_new(&cfg.it));
    must(rpma_cq_cfg_set_size(cfg.it, static_cast<uint32_t>(args.number("size"))));
    must(rpma_cq_cfg_set_comp_vector(cfg.it,
                                     static_cast<uint32_t>(args.number_or("vector", 0))));
    must(rpma_cq_new(world.peer, cfg.it, &lent_queue(args, "lent")));
}

// Sets a number of a configuration that the command gives.
template <class Cfg, class Number>
void set(const Args &args, const char *key, Cfg *cfg, int setter(Cfg *, Number)) {
    if (args.has(key))
        must(setter(cfg, static_cast<Number>(args.number(key))));
}

void configure(const Args &args) {
    rpma_conn_cfg *&cfg = world.cfg[args.slot("cfg", MAX_OTHERS)];
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
        must(rpma_conn_cfg_set_cq(cfg, lent_queue(args, "lent")));
    if (args.has("lent-rcq"))
        must(rpma_conn_cfg_set_rcq(cfg, lent_queue(args, "lent-rcq")));
    if (args.has("srq"))
        must(rpma_conn_cfg_set_srq(cfg, the_srq(args)));
}

void new_srq(const Args &args) {
    Scoped<rpma_srq_cfg, rpma_srq_cfg_delete> cfg;
    must(rpma_srq_cfg_new(&cfg.it));
    set(args, "rq", cfg.it, rpma_srq_cfg_set_rq_size);
    set(args, "rcq", cfg.it, rpma_srq_cfg_set_rcq_size);
    set(args, "sge", cfg.it, rpma_srq_cfg_set_max_sge);
    must(rpma_srq_new(world.peer, cfg.it, &the_srq(args)));
}

// A configuration with the direct write to PMem of direct=; served=1 states what the peer
// serves.
void describe_peer(const Args &args, rpma_peer_cfg **pcfg) {
    must(rpma_peer_cfg_new(pcfg));
    must(rpma_peer_cfg_set_direct_write_to_pmem(*pcfg, args.number("direct") != 0));
    if (args.is("served"))
        must(rpma_peer_cfg_set_served_by(*pcfg, world.peer));
}

void peer_descriptor(const Args &args) {
    ScopedPeerCfg pcfg;
    size_t size = 0;
    describe_peer(args, &pcfg.it);
    must(rpma_peer_cfg_get_descriptor_size(pcfg.it, &size));
    std::vector<unsigned char> descriptor(size);
    must(rpma_peer_cfg_get_descriptor(pcfg.it, descriptor.data()));
    reply_bytes("desc", descriptor.data(), size);
}

// Each byte's meaning as a descriptor for direct write to PMem, from byte 0 on: 0 or 1.
void peer_bytes(const Args &) {
    std::vector<unsigned char> answers;
    for (unsigned byte = 0; byte < 256; byte++) {
        const unsigned char descriptor = static_cast<unsigned char>(byte);
        ScopedPeerCfg pcfg;
        bool direct = false;
        must(rpma_peer_cfg_from_descriptor(&descriptor, 1, &pcfg.it));
        must(rpma_peer_cfg_get_direct_write_to_pmem(pcfg.it, &direct));
        answers.push_back(direct);
    }
    reply_bytes("direct", answers.data(), answers.size());
}

void apply(const Args &args) {
    const std::vector<unsigned char> descriptor = args.bytes("desc");
    ScopedPeerCfg pcfg;
    must(rpma_peer_cfg_from_descriptor(descriptor.data(), descriptor.size(), &pcfg.it));
    must(rpma_conn_apply_remote_peer_cfg(the_conn(args), pcfg.it));
}

// Packs count= regions from mr= on, a configuration if direct= is given, and the bytes of
// bytes=.
void pack(const Args &args) {
    const std::vector<unsigned char> bytes = args.bytes("bytes");
    std::vector<unsigned char> data(UINT8_MAX);
    rpma_conn_private_data pdata = private_data(data);
    pdata.len = static_cast<uint8_t>(args.number_or("room", UINT8_MAX));
    ScopedPeerCfg pcfg;
    if (args.has("direct"))
        describe_peer(args, &pcfg.it);
    must(rpma_conn_private_data_pack(
        &the_mr(args), static_cast<uint32_t>(args.number_or("count", 1)), pcfg.it, bytes.data(),
        static_cast<uint32_t>(bytes.size()), &pdata));
    reply_bytes("packed", pdata.ptr, pdata.len);
}

// Unpacks packed=, or else the connection's private data: makes the remote regions from rmr=
// on, and answers with the rest. apply=1: the connection applies the configuration.
void unpack(const Args &args) {
    std::vector<unsigned char> data = args.bytes("packed");
    rpma_conn_private_data pdata = private_data(data);
    uint32_t count = static_cast<uint32_t>(MAX_REGIONS - args.slot("rmr", MAX_REGIONS)),
             len = 0;
    ScopedPeerCfg pcfg;
    const void *bytes = nullptr;
    if (data.empty())
        must(rpma_conn_get_private_data(the_conn(args), &pdata));
    must(rpma_conn_private_data_unpack(&pdata, &the_remote(args), &count, &pcfg.it, &bytes,
                                       &len));
    reply("regions", count);
    reply_bytes("bytes", bytes, len);
    if (pcfg.it == nullptr)
        return;
    bool direct = false, is_stated = false, flush = false, atomic_write = false;
    must(rpma_peer_cfg_get_direct_write_to_pmem(pcfg.it, &direct));
    must(rpma_peer_cfg_get_served(pcfg.it, &is_stated, &flush, &atomic_write));
    reply("direct", direct);
    reply("stated", is_stated);
    reply("flush", flush);
    reply("atomic", atomic_write);
    if (args.is("apply"))
        must(rpma_conn_apply_remote_peer_cfg(the_conn(args), pcfg.it));
}

// Deletes all objects in the order that the manual asks for; the context stays.
void release(const Args &) {
    int first = 0;
    const auto remove = [&first](auto &&objects, auto function) {
        for (auto &object : objects) {
            const int code = object != nullptr ? function(&object) : 0;
            first = first != 0 ? first : code;
        }
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

const Commands here{
    {"context", context},
    {"peer", [](const Args &) { must(rpma_peer_new(world.device, &world.peer)); }},
    {"peer-delete", [](const Args &) { must(rpma_peer_delete(&world.peer)); }},
    {"cfg", configure},
    {"srq", new_srq},
    {"srq-delete", [](const Args &args) { must(rpma_srq_delete(&the_srq(args))); }},
    {"lend", lend},
    {"lend-no-more", [](const Args &args) { must(rpma_cq_delete(&lent_queue(args, "lent"))); }},
    {"pcfg", peer_descriptor},
    {"pcfg-bytes", peer_bytes},
    {"apply-pcfg", apply},
    {"pack", pack},
    {"unpack", unpack},
    {"release", release},
};

} // namespace
