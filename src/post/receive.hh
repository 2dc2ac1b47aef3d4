// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// receive.hh -- the queues that take receives

#pragma once

#include "post/refused.hh"

namespace rpma {

inline constexpr ReceiveQueue CONN_RECEIVES = {"ibv_post_recv", "rpma_conn_cfg_set_rq_size"};
inline constexpr ReceiveQueue SRQ_RECEIVES = {"ibv_post_srq_recv", "rpma_srq_cfg_set_rq_size"};

} // namespace rpma
