// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// pd_mr.cc -- protection domains, memory regions and memory windows.

#include "verbs.hh"
#include "word_order.hh"

#include <cerrno>

namespace sim {

int Verbs::alloc_pd(const AllocPd &request, AllocPd::Reply &reply) {
    Context *const context = find<Context>(request.context);
    if (!context)
        return EINVAL;
    if (context->device->removed)
        return EIO;
    int error;
    Pd *const made = create<Pd>(*context->device, error);
    if (!made)
        return error;
    made->context = context;
    context->objects++;
    reply.pd = made->handle;
    return 0;
}

void unpin(const Region &region) {
    if (!(region.access & IBV_ACCESS_ON_DEMAND))
        region.program->forget(region);
}

sim_memory Verbs::memory_of(const Mr &mr) const {
    if (!mr.program->is_persistent(mr.address, mr.length))
        return SIM_VOLATILE;
    return fabric_.options().has_fs_dax ? SIM_FS_DAX : SIM_DEVICE_DAX;
}

// Pins the memory only if the rest of the registration is valid. Only the second check takes
// the kind of the memory into account, which is known after pinning.
int Verbs::open_region(Mr &mr) {
    const sim_profile &profile = *mr.pd->context->device->profile;
    const bool is_on_demand = mr.access & IBV_ACCESS_ON_DEMAND;
    int error = sim_check_region(&profile, mr.access, mr.length, SIM_DEVICE_DAX);
    if (!error && mr.address + mr.length < mr.address)
        error = EINVAL;
    if (!error && !is_on_demand)
        error = mr.program->pin(mr);
    if (error)
        return error;
    const sim_memory memory = memory_of(mr);
    mr.is_persistent = memory != SIM_VOLATILE;
    error = sim_check_region(&profile, mr.access, mr.length, memory);
    if (error)
        unpin(mr);
    return error;
}

uint32_t Verbs::new_key() {
    uint32_t key;
    do
        key = (fabric_.next_key++ << 8) | static_cast<uint32_t>(fabric_.random(256));
    while (key == 0 || fabric_.keys.contains(key) || fabric_.mw_of(key));
    return key;
}

int Verbs::reg_mr(const RegMr &request, RegMr::Reply &reply) {
    Pd *const pd = find<Pd>(request.pd);
    if (!pd)
        return EINVAL;
    if (pd->context->device->removed)
        return EIO;
    int error;
    Mr *const made = create<Mr>(*pd->context->device, error);
    if (!made)
        return error;
    made->program = caller_.program;
    made->pd = pd;
    made->address = request.address;
    made->length = request.length;
    made->iova = request.iova;
    made->access = request.access;
    made->key = new_key(); // before pin(), which stores the region by its key
    error = open_region(*made);
    if (error) {
        fabric_.discard(*made);
        return error;
    }
    fabric_.keys.emplace(made->key, made);
    pd->users++;
    reply = {made->handle, made->key, made->key};
    return 0;
}

// Linux 7.3, drivers/infiniband/core/uverbs_cmd.c, ib_uverbs_rereg_mr(). rdma-core 65,
// tests/test_mr.py expects that the keys stay valid; libibverbs/verbs.c, ibv_rereg_mr(): the
// remote address is the new address.
int Verbs::rereg_mr(const ReregMr &request, RegMr::Reply &reply) {
    Mr *const mr = find<Mr>(request.mr);
    Pd *const pd = request.flags & IBV_REREG_MR_CHANGE_PD ? find<Pd>(request.pd) : nullptr;
    if (!mr)
        return EINVAL;
    if (!mr->pd->context->device->profile->has_rereg_mr)
        return EOPNOTSUPP;
    if (request.flags == 0 || (!pd && (request.flags & IBV_REREG_MR_CHANGE_PD)))
        return EINVAL;
    const Region old = *mr;
    show_words(fabric_, old);
    unpin(old);
    if (pd)
        mr->pd = pd;
    if (request.flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
        mr->iova = mr->address = request.address;
        mr->length = request.length;
    }
    if (request.flags & IBV_REREG_MR_CHANGE_ACCESS)
        mr->access = request.access;
    const int error = open_region(*mr);
    if (error) {
        static_cast<Region &>(*mr) = old;
        if (!(old.access & IBV_ACCESS_ON_DEMAND))
            (void)mr->program->pin(*mr);
        return error;
    }
    old.pd->users--;
    mr->pd->users++;
    reply = {mr->handle, mr->key, mr->key};
    return 0;
}

// Only regions with on-demand paging accept advice: Linux 7.3,
// drivers/infiniband/hw/mlx5/odp.c, mlx5_ib_advise_mr_prefetch(); sw/rxe/rxe_odp.c,
// rxe_ib_advise_mr_prefetch(), which rdma-core has called since 59.
int Verbs::advise_mr(const AdviseMr &request, Empty &) {
    const Pd *const pd = find<Pd>(request.pd);
    if (!pd)
        return EINVAL;
    const sim_profile &profile = *pd->context->device->profile;
    if (!profile.has_odp)
        return EOPNOTSUPP;
    std::vector<ibv_sge> sges;
    size_t offset = sizeof(request);
    if (request.num_sge == 0 || !get_all(offset, request.num_sge, sges) ||
        request.advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT ||
        (request.flags & ~static_cast<uint32_t>(IBV_ADVISE_MR_FLAG_FLUSH)))
        return EINVAL;
    for (const ibv_sge &sge : sges) {
        const Mr *const mr = fabric_.mr_of(sge.lkey);
        if (!mr || !(mr->access & IBV_ACCESS_ON_DEMAND))
            return profile.advise_error;
        const bool is_written = request.advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE ||
                                profile.advises_writable_only;
        if (mr->pd != pd || (is_written && !(mr->access & IBV_ACCESS_LOCAL_WRITE)))
            return profile.advise_access_error;
        if (Fabric::check_range(mr, sge, pd, 0))
            return EFAULT;
    }
    return 0;
}

// Linux 7.3, drivers/infiniband/core/uverbs_cmd.c, ib_uverbs_alloc_mw()
int Verbs::alloc_mw(const AllocMw &request, AllocMw::Reply &reply) {
    Pd *const pd = find<Pd>(request.pd);
    if (!pd)
        return EINVAL;
    if (!pd->context->device->profile->has_windows)
        return EOPNOTSUPP;
    if (request.type != IBV_MW_TYPE_1 && request.type != IBV_MW_TYPE_2)
        return EINVAL;
    int error;
    Mw *const made = create<Mw>(*pd->context->device, error);
    if (!made)
        return error;
    made->pd = pd;
    made->type = static_cast<ibv_mw_type>(request.type);
    made->key = new_key();
    fabric_.windows.emplace(made->key >> 8, made);
    pd->users++;
    reply = {made->handle, made->key};
    return 0;
}

int Verbs::persist(const Persist &request, Empty &) {
    caller_.program->persist(request.address, request.length, 0);
    return 0;
}

} // namespace sim
