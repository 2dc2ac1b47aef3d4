// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// stub.h -- the part of a kernel's driver that a user-space driver of rdma-core calls.

#ifndef DRIVERS_STUB_H
#define DRIVERS_STUB_H 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dlfcn.h>
#include <linux/types.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>

// The device, of which ask.py writes files of sysfs.
#define STUB_DEVICE "stub0"
enum { STUB_GUID = 1 };

// The function that this one replaces.
#define STUB_NEXT(function) ((__typeof__(function) *)dlsym(RTLD_NEXT, #function))

// A command of uverbs. `in` and `out` are the driver's parts of the request and of the
// response, after those of ib_user_verbs.h.
struct stub_call {
    uint32_t command; // with IB_USER_VERBS_CMD_FLAG_EXTENDED
    const void *request;
    void *response;
    const void *in;
    void *out;
    size_t in_size, out_size;
    uint32_t handle; // of the object that the command creates
    // The common part of the response of a created QP, with the requested sizes; otherwise
    // NULL.
    struct ib_uverbs_create_qp_resp *qp;
};

// The commands that have a driver's part; some drivers use the extended ones. An enumerator
// would have to fit int.
#define STUB_CREATE_CQ_EX (IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_CREATE_CQ)
#define STUB_CREATE_QP_EX (IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_CREATE_QP)

// The completion of a request of the last QP, or of the last SRQ, which is written into the
// last CQ.
struct stub_completion {
    enum stub_queue { STUB_SENDS, STUB_RECEIVES, STUB_SHARED_RECEIVES } queue;
    uint32_t index;  // of the request in its queue
    uint32_t status; // enum ibv_wc_status
    uint32_t opcode; // enum ibv_wc_opcode, or one that the driver does not know
    uint32_t length; // of the data
    bool has_imm;    // a message with immediate data
};
enum { STUB_UNKNOWN_OPCODE = 0xff };

struct stub_driver {
    const char *name;
    uint32_t id;         // enum rdma_driver_id, by which libibverbs finds the library
    uint32_t abi;        // the version of the interface
    bool is_iwarp;       // the kernel, not librdmacm, moves QPs through their states
    uint64_t more_flags; // of the device, device_cap_flags_ex
    // Sets the limits of the device.
    void (*describe)(struct ib_uverbs_query_device_resp *device);
    // Completes the response, whose common part is filled. Returns an error number.
    int (*complete)(struct stub_call *call);
    // Writes a completion as the device would. NULL: the stub does not know the format.
    void (*complete_one)(const struct stub_completion *completion);
};

extern const struct stub_driver stub_mlx5, stub_mlx4, stub_irdma, stub_bnxt_re, stub_hns,
    stub_cxgb4, stub_erdma, stub_mana, stub_qedr, stub_rxe, stub_siw;

const struct stub_driver *stub_driver(void); // that STUB_DRIVER names

// Returns EINVAL if a QP is larger than the limits of the device, as most kernel drivers do.
int stub_check_qp(const struct ib_uverbs_create_qp_resp *qp, uint32_t max_inline);

// The state of a QP (enum ibv_qp_state), which the program requests, or stub_cm.c sets on
// iWARP. The number of a QP is its handle.
uint32_t stub_qp_state(uint32_t handle);
void stub_set_qp_state(uint32_t handle, uint32_t state);

uint32_t stub_power_of_two(uint32_t least);

// The code of a status in the completions of mlx5, mlx4 and hns (mlx5/mlx5dv.h,
// MLX5_CQE_SYNDROME_*; hns/hns_roce_u_hw_v2.h, HNS_ROCE_V2_CQE_*).
unsigned char stub_syndrome(uint32_t status);
// The code of a send in the completions of mlx5 and mlx4 (mlx5/mlx5dv.h, MLX5_OPCODE_*).
unsigned char stub_mlx_opcode(const struct stub_completion *completion);

// Executes a command that librdmacm writes to this descriptor. Returns an error number.
int stub_execute_cm(int channel, const void *command, bool is_iwarp);

// Closes the other end of a netlink socket. Does nothing if `fd` is another descriptor.
void stub_close_netlink(int fd);

// Returns zeroed memory that mmap() returns for the offset, which it sets.
void *stub_new_pages(size_t size, uint64_t *offset);

// For the program under test, which finds it by dlsym(): copies the memory that the driver has
// allocated for queues and mapped for doorbells, and returns its size. With a size of 0 it
// begins: memory that exists is left out.
size_t stub_memory(void *copy, size_t size);

// For the program under test, too: calls complete_one(), unless `completion` is NULL. Returns
// false if the stub does not know the format.
bool stub_complete(const struct stub_completion *completion);

#endif // DRIVERS_STUB_H
