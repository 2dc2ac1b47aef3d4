// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// fakes.c -- the setup of the fakes: the device is like rdma_rxe or like siw, and messages
// arrive on request.

#include "truth.h"

#include "../unit/fakes/fake.h"

void prepare_fakes(bool as_siw) {
    fake_reset();
    *fake_device() = (struct fake_device){.odp = true,
                                          .native_flush = true,
                                          .native_atomic_write = true,
                                          .addresses = 1,
                                          .max_cqe = fake_device()->max_cqe,
                                          .vectors = fake_device()->vectors,
                                          .max_wr = fake_device()->max_wr,
                                          .max_sge = FAKE_MAX_SGE,
                                          .max_sge_rd = FAKE_MAX_SGE_RD,
                                          .max_srq_sge = FAKE_MAX_SRQ_SGE,
                                          .transport = IBV_TRANSPORT_IB};
    if (!as_siw)
        return;
    fake_device()->odp = false;
    fake_device()->native_flush = false;
    fake_device()->native_atomic_write = false;
    fake_device()->plain_qp = true;
    fake_device()->max_wr = 32768;
    fake_device()->max_cqe = 3276800;
    fake_device()->max_sge = 6;
    fake_device()->max_srq_sge = 6;
    fake_device()->hides_refusals = true;
    fake_device()->transport = IBV_TRANSPORT_IWARP;
}

void fake_arrival(struct rdma_event_channel *channel, enum rdma_cm_event_type type,
                  const void *data, uint8_t len) {
    fake_cm_event(channel->fd, type, data, len);
}
