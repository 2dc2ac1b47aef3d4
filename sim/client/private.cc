// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// private.cc -- the functions that libibverbs.so.1 exports to the libraries of providers, and
// to librdmacm.so.1
//
// Programs that can use direct verbs link libmlx5.so.1 or libefa.so.1, which need these to be
// loaded, and rsocket.cc loads librdmacm.so.1 of the machine. They are not called: no device of
// the fabric belongs to a provider, and the fabric has the calls of the kernel.

#include "unsupported.hh"

#define PRIVATE __attribute__((visibility("default")))

extern "C" {

PRIVATE extern bool verbs_allow_disassociate_destroy;
bool verbs_allow_disassociate_destroy;
PRIVATE void verbs_register_driver_34(const void *);
void verbs_register_driver_34(const void *) {}
PRIVATE void __verbs_log(void *, unsigned, const char *, ...);
void __verbs_log(void *, unsigned, const char *, ...) {}

#define UNSUPPORTED(name)                                                    \
    PRIVATE int name();                                                      \
    int name() {                                                             \
        return rdma_sim_unsupported(#name, "the interface of providers is"); \
    }
// clang-format off
UNSUPPORTED(__ioctl_final_num_attrs) UNSUPPORTED(_verbs_init_and_alloc_context)
UNSUPPORTED(execute_ioctl) UNSUPPORTED(ibv_cmd_advise_mr) UNSUPPORTED(ibv_cmd_alloc_dm)
UNSUPPORTED(ibv_cmd_alloc_mw) UNSUPPORTED(ibv_cmd_alloc_pd) UNSUPPORTED(ibv_cmd_attach_mcast)
UNSUPPORTED(ibv_cmd_close_xrcd) UNSUPPORTED(ibv_cmd_create_ah) UNSUPPORTED(ibv_cmd_create_counters)
UNSUPPORTED(ibv_cmd_create_cq) UNSUPPORTED(ibv_cmd_create_cq_ex) UNSUPPORTED(ibv_cmd_create_cq_ex2)
UNSUPPORTED(ibv_cmd_create_flow) UNSUPPORTED(ibv_cmd_create_flow_action_esp)
UNSUPPORTED(ibv_cmd_create_qp) UNSUPPORTED(ibv_cmd_create_qp_ex) UNSUPPORTED(ibv_cmd_create_qp_ex2)
UNSUPPORTED(ibv_cmd_create_rwq_ind_table) UNSUPPORTED(ibv_cmd_create_srq)
UNSUPPORTED(ibv_cmd_create_srq_ex) UNSUPPORTED(ibv_cmd_create_wq) UNSUPPORTED(ibv_cmd_dealloc_mw)
UNSUPPORTED(ibv_cmd_dealloc_pd) UNSUPPORTED(ibv_cmd_dereg_mr) UNSUPPORTED(ibv_cmd_destroy_ah)
UNSUPPORTED(ibv_cmd_destroy_counters) UNSUPPORTED(ibv_cmd_destroy_cq)
UNSUPPORTED(ibv_cmd_destroy_flow) UNSUPPORTED(ibv_cmd_destroy_flow_action)
UNSUPPORTED(ibv_cmd_destroy_qp) UNSUPPORTED(ibv_cmd_destroy_rwq_ind_table)
UNSUPPORTED(ibv_cmd_destroy_srq) UNSUPPORTED(ibv_cmd_destroy_wq) UNSUPPORTED(ibv_cmd_detach_mcast)
UNSUPPORTED(ibv_cmd_free_dm) UNSUPPORTED(ibv_cmd_get_context) UNSUPPORTED(ibv_cmd_modify_cq)
UNSUPPORTED(ibv_cmd_modify_flow_action_esp) UNSUPPORTED(ibv_cmd_modify_qp)
UNSUPPORTED(ibv_cmd_modify_qp_ex) UNSUPPORTED(ibv_cmd_modify_srq) UNSUPPORTED(ibv_cmd_modify_wq)
UNSUPPORTED(ibv_cmd_open_qp) UNSUPPORTED(ibv_cmd_open_xrcd) UNSUPPORTED(ibv_cmd_poll_cq)
UNSUPPORTED(ibv_cmd_post_recv) UNSUPPORTED(ibv_cmd_post_send) UNSUPPORTED(ibv_cmd_post_srq_recv)
UNSUPPORTED(ibv_cmd_query_context) UNSUPPORTED(ibv_cmd_query_device_any)
UNSUPPORTED(ibv_cmd_query_mr) UNSUPPORTED(ibv_cmd_query_port) UNSUPPORTED(ibv_cmd_query_qp)
UNSUPPORTED(ibv_cmd_query_srq) UNSUPPORTED(ibv_cmd_read_counters) UNSUPPORTED(ibv_cmd_reg_dm_mr)
UNSUPPORTED(ibv_cmd_reg_dmabuf_mr) UNSUPPORTED(ibv_cmd_reg_mr) UNSUPPORTED(ibv_cmd_req_notify_cq)
UNSUPPORTED(ibv_cmd_rereg_mr) UNSUPPORTED(ibv_cmd_resize_cq) UNSUPPORTED(ibv_copy_ah_attr_from_kern)
UNSUPPORTED(ibv_copy_path_rec_from_kern) UNSUPPORTED(ibv_copy_path_rec_to_kern)
UNSUPPORTED(ibv_copy_qp_attr_from_kern) UNSUPPORTED(ibv_read_ibdev_sysfs_file)
UNSUPPORTED(ibv_wr_opcode_str) UNSUPPORTED(verbs_init_cq) UNSUPPORTED(verbs_open_device)
UNSUPPORTED(verbs_set_ops) UNSUPPORTED(verbs_uninit_context)
// clang-format on
}
