// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// batch.cc -- memory and list of a batch

#include "core/batch.hh"

using namespace rpma;

rpma_batch::rpma_batch(rpma_conn &connection, uint32_t max_ops, Slots &&slots,
                       std::size_t slot_size)
    : conn(connection), qp(connection.qp), slot_size_(slot_size), slots_(std::move(slots)) {
    Slot *slot = first();
    for (uint32_t i = 0; i < max_ops; i++) {
        slot->wr.sg_list = slot->sges();
        slot->wr.next = &slot_behind(slot)->wr;
        slot = slot_behind(slot);
    }
    limit_ = slot;
    reset();
}

std::unique_ptr<rpma_batch> rpma_batch::create(Call &call, rpma_conn &conn, uint32_t max_ops) {
    // No send queue takes more. The memory of a wrong number would be granted, and end in the
    // kernel's search for a process to kill.
    if (max_ops > conn.max_qp_wr()) {
        RPMA_FAIL(
            call, RPMA_E_INVAL, 0,
            "a batch of %u operations (max_ops): a send queue of the device has at most %u "
            "(max_qp_wr)",
            max_ops, conn.max_qp_wr());
        return nullptr;
    }
    const std::size_t slot_size = sizeof(Slot) + conn.max_sge() * sizeof(ibv_sge);
    // Providers copy a work request whole: what nobody sets is 0.
    Slots slots(static_cast<Slot *>(std::calloc(max_ops, slot_size)));
    if (!slots) {
        RPMA_FAIL(call, RPMA_E_NOMEM, 0, "out of memory: %u operations of %zu bytes", max_ops,
                  slot_size);
        return nullptr;
    }
    return make<rpma_batch>(call, conn, max_ops, std::move(slots), slot_size);
}

void rpma_batch::reset() {
    free = first();
    last = nullptr;
    is_native = false;
    has_list = false;
    restart();
}
