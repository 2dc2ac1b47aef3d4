// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// mr.cc -- exports: memory regions

#include "api/getter.hh"

#include "core/mr.hh"
#include "core/peer.hh"

using namespace rpma;

namespace {

constexpr int DESCRIPTOR_USAGE = 0xff; // in the descriptor; at least one must be set
constexpr int ALL_USAGE = DESCRIPTOR_USAGE | RPMA_MR_USAGE_ATOMIC;
constexpr int FLUSH_USAGE =
    RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;

} // namespace

int rpma_mr_reg(struct rpma_peer *peer, void *ptr, size_t size, int usage,
                struct rpma_mr_local **mr_ptr) {
    RPMA_REFUSE(peer == NULL);
    RPMA_REFUSE(ptr == NULL);
    RPMA_REFUSE(mr_ptr == NULL);
    RPMA_REFUSE_VALUE(__func__, size == 0, size, "1 and more");
    RPMA_REFUSE_AS(__func__, (usage & DESCRIPTOR_USAGE) == 0 || (usage & ~ALL_USAGE) != 0,
                   "usage is 0x%x; possible: RPMA_MR_USAGE_*, one or more of them, "
                   "RPMA_MR_USAGE_ATOMIC together with another",
                   static_cast<unsigned>(usage));
    Call call(__func__);
    return call.deliver(peer->register_memory(call, ptr, size, usage), mr_ptr);
}

int rpma_mr_dereg(struct rpma_mr_local **mr_ptr) {
    RPMA_REFUSE(mr_ptr == NULL);
    return try_delete(__func__, mr_ptr);
}

int rpma_mr_get_ptr(const struct rpma_mr_local *mr, void **ptr) {
    RPMA_GET(mr, ptr, mr->region->addr);
}

int rpma_mr_get_size(const struct rpma_mr_local *mr, size_t *size) {
    RPMA_GET(mr, size, mr->region->length);
}

int rpma_mr_get_ibv_mr(const struct rpma_mr_local *mr, struct ibv_mr **ibv_mr_ptr) {
    RPMA_GET(mr, ibv_mr_ptr, mr->region.get());
}

int rpma_mr_get_descriptor(const struct rpma_mr_local *mr, void *desc) {
    RPMA_REFUSE(mr == NULL);
    RPMA_REFUSE(desc == NULL);
    put_region(static_cast<unsigned char *>(desc), mr->describe());
    return 0;
}

int rpma_mr_get_descriptor_size(const struct rpma_mr_local *mr, size_t *desc_size) {
    RPMA_GET(mr, desc_size, MR_DESCRIPTOR_SIZE);
}

int rpma_mr_advise(struct rpma_mr_local *mr, size_t offset, size_t len, int advice,
                   uint32_t flags) {
    RPMA_REFUSE(mr == NULL);
    RPMA_REFUSE_AS(__func__, len > UINT32_MAX, RPMA_TOO_LONG, "len", len);
    Call call(__func__);
    mr->advise(call, offset, static_cast<uint32_t>(len), advice, flags);
    return call.finish();
}

int rpma_mr_remote_from_descriptor(const void *desc, size_t desc_size,
                                   struct rpma_mr_remote **mr_ptr) {
    RPMA_REFUSE(desc == NULL);
    RPMA_REFUSE(mr_ptr == NULL);
    Call call(__func__);
    if (!check_descriptor_size(call, desc_size, MR_DESCRIPTOR_SIZE))
        return call.finish();
    const Region region = get_region(static_cast<const unsigned char *>(desc));
    // A bare descriptor does not advertise native flushes: assume all flush types of the
    // region.
    return call.deliver(rpma_mr_remote::create(call, region, UINT8_MAX), mr_ptr);
}

int rpma_mr_remote_delete(struct rpma_mr_remote **mr_ptr) {
    RPMA_REFUSE(mr_ptr == NULL);
    return delete_and_clear(mr_ptr);
}

int rpma_mr_remote_get_size(const struct rpma_mr_remote *mr, size_t *size) {
    RPMA_GET(mr, size, mr->size);
}

int rpma_mr_remote_get_flush_type(const struct rpma_mr_remote *mr, int *flush_type) {
    RPMA_GET(mr, flush_type, mr->usage & FLUSH_USAGE);
}

int rpma_mr_remote_get_key(const struct rpma_mr_remote *mr, uint64_t *addr, uint32_t *rkey) {
    RPMA_REFUSE(mr == NULL);
    RPMA_REFUSE(addr == NULL);
    RPMA_REFUSE(rkey == NULL);
    *addr = mr->addr;
    *rkey = mr->rkey;
    return 0;
}
