// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// direct_verbs.cc -- the functions of libmlx5 and libefa with a parameter of libibverbs
//
// In the real libraries they cast it to a structure of their driver, which no object of the
// fabric is.

#include <cerrno>
#include <cstdio>

#include "preload.hh"

namespace {

// The line of rdma_sim_unsupported(), without libibverbs.so.1, which a program of libibumad
// need not load.
int refuse(const char *function, const char *feature = "direct verbs are") {
    fprintf(stderr, "rdma-sim: %s: %s: %s not supported: see Limits in rdma-sim(1)\n",
            program_invocation_short_name, function, feature);
    return EOPNOTSUPP;
}

} // namespace

#define FAILS(name)           \
    EXPORTED int name() {     \
        return refuse(#name); \
    }
#define NONE(name)             \
    EXPORTED void *name() {    \
        errno = refuse(#name); \
        return nullptr;        \
    }

// Returns false for every device, so that the caller uses its fallback.
EXPORTED bool mlx5dv_is_supported(const void *) {
    return false;
}
EXPORTED int efadv_query_device() {
    return EOPNOTSUPP;
}

// libibumad. umad_init() and the functions that read sysfs work.
EXPORTED int umad_open_port() {
    return -refuse("umad_open_port", "management datagrams are");
}

// clang-format off
NONE(efadv_create_cq) NONE(efadv_create_driver_qp) NONE(efadv_create_qp_ex) NONE(efadv_cq_from_ibv_cq_ex)
FAILS(efadv_query_ah) FAILS(efadv_query_mr)
NONE(mlx5dv_alloc_dm) NONE(mlx5dv_alloc_var) NONE(mlx5dv_create_cq) NONE(mlx5dv_create_flow)
NONE(mlx5dv_create_flow_action_esp) NONE(mlx5dv_create_flow_action_modify_header)
NONE(mlx5dv_create_flow_action_packet_reformat) NONE(mlx5dv_create_flow_matcher)
NONE(mlx5dv_create_mkey) NONE(mlx5dv_create_qp) NONE(mlx5dv_create_steering_anchor)
NONE(mlx5dv_create_wq) NONE(mlx5dv_crypto_login_create) NONE(mlx5dv_dek_create)
NONE(mlx5dv_devx_alloc_msi_vector) NONE(mlx5dv_devx_alloc_uar) NONE(mlx5dv_devx_create_cmd_comp)
NONE(mlx5dv_devx_create_eq) NONE(mlx5dv_devx_create_event_channel) NONE(mlx5dv_devx_obj_create)
NONE(mlx5dv_devx_umem_reg) NONE(mlx5dv_devx_umem_reg_ex) NONE(mlx5dv_dr_action_create_dest_ibv_qp)
NONE(mlx5dv_dr_domain_create) NONE(mlx5dv_open_device) NONE(mlx5dv_pp_alloc)
NONE(mlx5dv_qp_ex_from_ibv_qp_ex) NONE(mlx5dv_sched_leaf_create) NONE(mlx5dv_sched_node_create)
FAILS(_mlx5dv_query_port) FAILS(mlx5dv_crypto_login) FAILS(mlx5dv_crypto_login_query_state)
FAILS(mlx5dv_crypto_logout) FAILS(mlx5dv_dci_stream_id_reset) FAILS(mlx5dv_devx_cq_modify)
FAILS(mlx5dv_devx_cq_query) FAILS(mlx5dv_devx_general_cmd) FAILS(mlx5dv_devx_ind_tbl_modify)
FAILS(mlx5dv_devx_ind_tbl_query) FAILS(mlx5dv_devx_qp_modify) FAILS(mlx5dv_devx_qp_query)
FAILS(mlx5dv_devx_query_eqn) FAILS(mlx5dv_devx_srq_modify) FAILS(mlx5dv_devx_srq_query)
FAILS(mlx5dv_devx_wq_modify) FAILS(mlx5dv_devx_wq_query) FAILS(mlx5dv_get_clock_info)
FAILS(mlx5dv_init_obj) FAILS(mlx5dv_map_ah_to_qp) FAILS(mlx5dv_modify_qp_lag_port)
FAILS(mlx5dv_modify_qp_sched_elem) FAILS(mlx5dv_modify_qp_udp_sport)
FAILS(mlx5dv_qp_cancel_posted_send_wrs) FAILS(mlx5dv_query_device) FAILS(mlx5dv_query_qp_lag_port)
FAILS(mlx5dv_reserved_qpn_alloc) FAILS(mlx5dv_reserved_qpn_dealloc) FAILS(mlx5dv_set_context_attr)
    // clang-format on
