// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// verbs.hh -- the requests of protocol.hh, except those to the connection manager.

#pragma once

#include "fabric.hh"

namespace sim {

// A request that is being executed. All functions return error numbers.
class Verbs {
  public:
    Verbs(Fabric &fabric, Caller &caller, const void *request, size_t length, Reply &reply)
        : fabric_(fabric), caller_(caller), request_(static_cast<const std::byte *>(request)),
          length_(length), reply_(reply) {}
    int call(uint32_t op);

    static Context *context_of(const Object &object);    // NULL: the object has none
    static void release(Fabric &fabric, Object &object); // called before its deletion

  private:
    Fabric &fabric_;
    Caller &caller_;
    const std::byte *request_;
    size_t length_;
    Reply &reply_;

    template <class T> T *find(uint32_t handle) const {
        return fabric_.find<T>(caller_.session, handle);
    }
    template <class T> T *create() {
        T *const made = fabric_.create<T>(caller_.session);
        made->pid = caller_.pid;
        return made;
    }
    // Creates an object that the device counts. Returns NULL and sets `error` if it has as many
    // already as it can.
    template <class T> T *create(Device &device, int &error) {
        error = check_count(device, T::KIND);
        if (error)
            return nullptr;
        T *const made = create<T>();
        made->count = &device.counts[T::KIND];
        ++*made->count;
        return made;
    }
    static int check_count(const Device &device, Object::Kind kind);
    // Returns false if `op` is not the number of this request type.
    template <class T, class R>
    bool decode(uint32_t op, int (Verbs::*execute)(const T &, R &), int &error);

    // context.cc
    int hello(const Hello &, Hello::Reply &);
    int device(const DeviceInfo &, DeviceInfo::Reply &);
    int open_context(const OpenContext &, OpenContext::Reply &);
    int query_device(const QueryDevice &, QueryDevice::Reply &);
    int query_port(const QueryPort &, QueryPort::Reply &);
    int query_gid(const QueryGid &, QueryGid::Reply &);
    int read_counter(const ReadCounter &, ReadCounter::Reply &);
    int netlink(const Netlink &, Netlink::Reply &);
    // pd_mr.cc
    int alloc_pd(const AllocPd &, AllocPd::Reply &);
    int reg_mr(const RegMr &, RegMr::Reply &);
    int rereg_mr(const ReregMr &, ReregMr::Reply &);
    int advise_mr(const AdviseMr &, Empty &);
    int alloc_mw(const AllocMw &, AllocMw::Reply &);
    int persist(const Persist &, Empty &);
    uint32_t new_key();
    int open_region(Mr &mr);
    sim_memory memory_of(const Mr &mr) const;
    // objects.cc
    int create_channel(const CreateChannel &, CreateChannel::Reply &);
    int create_ah(const CreateAh &, CreateAh::Reply &);
    int take_event(const TakeEvent &, TakeEvent::Reply &);
    int destroy(const Destroy &, Destroy::Reply &);
    // qp.cc
    int create_cq(const CreateCq &, CreateCq::Reply &);
    int resize_cq(const ResizeCq &, CreateCq::Reply &);
    int req_notify(const ReqNotify &, Empty &);
    int open_xrcd(const OpenXrcd &, OpenXrcd::Reply &);
    int create_srq(const CreateSrq &, CreateSrq::Reply &);
    int modify_srq(const ModifySrq &, Empty &);
    int query_srq(const QuerySrq &, ibv_srq_attr &);
    int create_qp(const CreateQp &, CreateQp::Reply &);
    int modify_qp(const ModifyQp &, ModifyQp::Reply &);
    int query_qp(const QueryQp &, QueryQp::Reply &);
    int multicast(const Multicast &, Empty &);
    // post.cc
    int post_send(const PostSend &, PostSend::Reply &);
    int post_recv(const PostRecv &, PostSend::Reply &);
    int refuse_by_fault(bool is_queued);
    int check_send(const Qp &qp, Send &send, bool is_built, const size_t *copy) const;
    size_t *copy_of(const Object &queue, Usage &usage, size_t used, const sim_profile &profile);
    int refuse_doorbell(const Qp &qp);
    void grant_credit(Qp &qp, size_t room);
    template <class T> bool get(size_t &offset, T &value) const;
    template <class T> bool get_all(size_t &offset, size_t count, std::vector<T> &values) const;
};

// Unpins a region's memory. Memory with on-demand paging was not pinned.
void unpin(const Region &region);

} // namespace sim
