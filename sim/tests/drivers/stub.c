// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// stub.c -- the kernel's side of uverbs, for LD_PRELOAD: it lets the user-space drivers of
// rdma-core open a device that does not exist, create objects and post.
//
// /dev/infiniband/* opens /dev/null, whose ioctl() fails with ENOTTY. libibverbs then writes
// its commands (libibverbs/cmd_fallback.c), and write() executes them.

// open() and open64() are two functions here.
#undef _FILE_OFFSET_BITS

#include "stub.h"

#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

enum { MAX_DESCRIPTORS = 1024, MAX_PAGES = 4096, MAX_HANDLES = 8192 };
enum { EXTENDED = IB_USER_VERBS_CMD_FLAG_EXTENDED };

static enum device { NONE, UVERBS, CM } device_of[MAX_DESCRIPTORS]; // that a descriptor opened
static struct memory {
    void *address;
    size_t size;
} pages[MAX_PAGES], of_driver[MAX_PAGES];
static size_t page_count, of_driver_count;
static uint32_t last_handle;
static uint8_t qp_states[MAX_HANDLES]; // enum ibv_qp_state

const struct stub_driver *stub_driver(void) {
    static const struct stub_driver *const drivers[] = {
        &stub_mlx5,  &stub_mlx4, &stub_irdma, &stub_bnxt_re, &stub_hns, &stub_cxgb4,
        &stub_erdma, &stub_mana, &stub_qedr,  &stub_rxe,     &stub_siw};
    static const char suffix[] = "-iwarp"; // of a driver for both transports
    static struct stub_driver iwarp;
    const char *const name = getenv("STUB_DRIVER");
    for (size_t i = 0; name && i < LENGTH(drivers); i++) {
        const size_t length = strlen(drivers[i]->name);
        if (strcmp(drivers[i]->name, name) == 0)
            return drivers[i];
        if (strncmp(drivers[i]->name, name, length) == 0 &&
            strcmp(name + length, suffix) == 0) {
            iwarp = *drivers[i];
            iwarp.is_iwarp = true;
            return &iwarp;
        }
    }
    fprintf(stderr, "stub: STUB_DRIVER does not name a driver\n");
    exit(2);
}

bool stub_complete(const struct stub_completion *completion) {
    if (stub_driver()->complete_one && completion)
        stub_driver()->complete_one(completion);
    return stub_driver()->complete_one != NULL;
}

unsigned char stub_syndrome(uint32_t status) {
    switch (status) {
    case IBV_WC_SUCCESS:
        return 0;
    case IBV_WC_LOC_LEN_ERR:
        return 0x01;
    case IBV_WC_LOC_PROT_ERR:
        return 0x04;
    case IBV_WC_WR_FLUSH_ERR:
        return 0x05;
    case IBV_WC_REM_INV_REQ_ERR:
        return 0x12;
    case IBV_WC_REM_ACCESS_ERR:
        return 0x13;
    case IBV_WC_RETRY_EXC_ERR:
        return 0x15;
    case IBV_WC_RNR_RETRY_EXC_ERR:
        return 0x16;
    default:
        abort();
    }
}

unsigned char stub_mlx_opcode(const struct stub_completion *completion) {
    switch (completion->opcode) {
    case IBV_WC_RDMA_WRITE:
        return completion->has_imm ? 0x09 : 0x08;
    case IBV_WC_SEND:
        return completion->has_imm ? 0x0b : 0x0a;
    case IBV_WC_RDMA_READ:
        return 0x10;
    default:
        return 0x1d; // no opcode
    }
}

uint32_t stub_power_of_two(uint32_t least) {
    uint32_t size = 1;
    while (size < least)
        size *= 2;
    return size;
}

void *stub_new_pages(size_t size, uint64_t *offset) {
    if (page_count == MAX_PAGES)
        abort();
    void *const made =
        STUB_NEXT(mmap)(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pages[page_count].address = made;
    pages[page_count].size = size;
    *offset = (++page_count) << 20; // no driver uses such an offset for a doorbell
    return made;
}

// ---- commands ------------------------------------------------------------------------------

static const struct ib_uverbs_query_device_resp usual_limits = {
    .max_mr_size = UINT64_MAX,
    .page_size_cap = 0xfffff000,
    .max_qp = 1 << 17,
    .max_qp_wr = 1 << 15,
    .max_sge = 30,
    .max_sge_rd = 30,
    .max_cq = 1 << 17,
    .max_cqe = (1 << 22) - 1,
    .max_mr = 1 << 20,
    .max_pd = 1 << 20,
    .max_qp_rd_atom = 16,
    .max_qp_init_rd_atom = 16,
    .max_srq = 1 << 20,
    .max_srq_wr = 1 << 15,
    .max_srq_sge = 30,
    .max_ah = 1 << 20,
    .max_pkeys = 1,
    .phys_port_cnt = 1,
};
static struct ib_uverbs_query_device_resp device; // set by the first command

int stub_check_qp(const struct ib_uverbs_create_qp_resp *qp, uint32_t max_inline) {
    return qp->max_send_wr > device.max_qp_wr || qp->max_recv_wr > device.max_qp_wr ||
                   qp->max_send_sge > device.max_sge || qp->max_recv_sge > device.max_sge ||
                   qp->max_inline_data > max_inline
               ? EINVAL
               : 0;
}

void stub_set_qp_state(uint32_t handle, uint32_t state) {
    if (handle < MAX_HANDLES)
        qp_states[handle] = (uint8_t)state;
}

static void modify_qp(const struct ib_uverbs_modify_qp *request) {
    enum { QP_STATE = 1 }; // IB_QP_STATE
    if (request->attr_mask & QP_STATE)
        stub_set_qp_state(request->qp_handle, request->qp_state);
}

uint32_t stub_qp_state(uint32_t handle) {
    return handle < MAX_HANDLES ? qp_states[handle] : 0;
}

static bool is_cq_size(uint32_t entries) {
    return entries > 0 && entries <= device.max_cqe;
}

static void query_port(struct ib_uverbs_query_port_resp *port) {
    *port = (struct ib_uverbs_query_port_resp){.max_msg_sz = 1 << 30,
                                               .gid_tbl_len = 1,
                                               .pkey_tbl_len = 1,
                                               .state = 4, // active
                                               .max_mtu = 5,
                                               .active_mtu = 3,
                                               .link_layer = 2};
}

static void create_qp(const struct ib_uverbs_create_qp *request,
                      struct ib_uverbs_create_qp_resp *response, uint32_t handle) {
    *response = (struct ib_uverbs_create_qp_resp){.qp_handle = handle,
                                                  .qpn = handle,
                                                  .max_send_wr = request->max_send_wr,
                                                  .max_recv_wr = request->max_recv_wr,
                                                  .max_send_sge = request->max_send_sge,
                                                  .max_recv_sge = request->max_recv_sge,
                                                  .max_inline_data = request->max_inline_data};
}

// Fills the common part of a response. `handle` is a new one.
static int execute_call(struct stub_call *call) {
    const uint32_t handle = call->handle;
    void *const response = call->response;
    switch (call->command) {
    case IB_USER_VERBS_CMD_GET_CONTEXT:
        *(struct ib_uverbs_get_context_resp *)response = (struct ib_uverbs_get_context_resp){
            .async_fd = (uint32_t)eventfd(0, EFD_CLOEXEC), .num_comp_vectors = 4};
        return 0;
    case IB_USER_VERBS_CMD_QUERY_DEVICE:
        *(struct ib_uverbs_query_device_resp *)response = device;
        return 0;
    case EXTENDED | IB_USER_VERBS_EX_CMD_QUERY_DEVICE: {
        struct ib_uverbs_ex_query_device_resp *const made = response;
        made->base = device;
        made->device_cap_flags_ex = stub_driver()->more_flags;
        made->response_length = sizeof(*made);
        return 0;
    }
    case IB_USER_VERBS_CMD_QUERY_PORT:
        query_port(response);
        return 0;
    case IB_USER_VERBS_CMD_ALLOC_PD:
        *(struct ib_uverbs_alloc_pd_resp *)response = (struct ib_uverbs_alloc_pd_resp){handle};
        return 0;
    case IB_USER_VERBS_CMD_REG_MR:
        *(struct ib_uverbs_reg_mr_resp *)response =
            (struct ib_uverbs_reg_mr_resp){handle, handle, handle};
        return 0;
    case IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL:
        *(struct ib_uverbs_create_comp_channel_resp *)response =
            (struct ib_uverbs_create_comp_channel_resp){(uint32_t)eventfd(0, EFD_CLOEXEC)};
        return 0;
    case IB_USER_VERBS_CMD_CREATE_CQ:
        if (!is_cq_size(((const struct ib_uverbs_create_cq *)call->request)->cqe))
            return EINVAL;
        *(struct ib_uverbs_create_cq_resp *)response = (struct ib_uverbs_create_cq_resp){
            handle, ((const struct ib_uverbs_create_cq *)call->request)->cqe};
        return 0;
    case EXTENDED | IB_USER_VERBS_EX_CMD_CREATE_CQ:
        if (!is_cq_size(((const struct ib_uverbs_ex_create_cq *)call->request)->cqe))
            return EINVAL;
        *(struct ib_uverbs_ex_create_cq_resp *)response = (struct ib_uverbs_ex_create_cq_resp){
            .base = {handle, ((const struct ib_uverbs_ex_create_cq *)call->request)->cqe},
            .response_length = sizeof(struct ib_uverbs_ex_create_cq_resp)};
        return 0;
    case IB_USER_VERBS_CMD_CREATE_SRQ: {
        if (device.max_srq == 0)
            return EOPNOTSUPP;
        const struct ib_uverbs_create_srq *const request = call->request;
        *(struct ib_uverbs_create_srq_resp *)response = (struct ib_uverbs_create_srq_resp){
            handle, request->max_wr, request->max_sge, handle};
        return 0;
    }
    case IB_USER_VERBS_CMD_CREATE_XSRQ: {
        if (device.max_srq == 0)
            return EOPNOTSUPP;
        const struct ib_uverbs_create_xsrq *const request = call->request;
        *(struct ib_uverbs_create_srq_resp *)response = (struct ib_uverbs_create_srq_resp){
            handle, request->max_wr, request->max_sge, handle};
        return 0;
    }
    case IB_USER_VERBS_CMD_CREATE_QP:
        create_qp(call->request, response, handle);
        call->qp = response;
        return 0;
    case EXTENDED | IB_USER_VERBS_EX_CMD_CREATE_QP: {
        const struct ib_uverbs_ex_create_qp *const ex = call->request;
        const struct ib_uverbs_create_qp request = {.max_send_wr = ex->max_send_wr,
                                                    .max_recv_wr = ex->max_recv_wr,
                                                    .max_send_sge = ex->max_send_sge,
                                                    .max_recv_sge = ex->max_recv_sge,
                                                    .max_inline_data = ex->max_inline_data};
        struct ib_uverbs_ex_create_qp_resp *const made = response;
        create_qp(&request, &made->base, handle);
        call->qp = &made->base;
        made->response_length = sizeof(*made);
        return 0;
    }
    case IB_USER_VERBS_CMD_MODIFY_QP:
    case EXTENDED | IB_USER_VERBS_EX_CMD_MODIFY_QP: // begins with the same structure
        modify_qp(call->request);
        return 0;
    default: // destroys or changes an object; a response is zero
        return 0;
    }
}

// The sizes of the common parts of the legacy commands that have a driver's part.
static void split(struct stub_call *call, size_t in_size, size_t out_size) {
    static const struct {
        uint32_t command;
        size_t request, response;
    } sizes[] = {
        {IB_USER_VERBS_CMD_GET_CONTEXT, sizeof(struct ib_uverbs_get_context),
         sizeof(struct ib_uverbs_get_context_resp)},
        {IB_USER_VERBS_CMD_QUERY_DEVICE, sizeof(struct ib_uverbs_query_device),
         sizeof(struct ib_uverbs_query_device_resp)},
        {IB_USER_VERBS_CMD_ALLOC_PD, sizeof(struct ib_uverbs_alloc_pd),
         sizeof(struct ib_uverbs_alloc_pd_resp)},
        {IB_USER_VERBS_CMD_REG_MR, sizeof(struct ib_uverbs_reg_mr),
         sizeof(struct ib_uverbs_reg_mr_resp)},
        {IB_USER_VERBS_CMD_CREATE_CQ, sizeof(struct ib_uverbs_create_cq),
         sizeof(struct ib_uverbs_create_cq_resp)},
        {IB_USER_VERBS_CMD_CREATE_SRQ, sizeof(struct ib_uverbs_create_srq),
         sizeof(struct ib_uverbs_create_srq_resp)},
        {IB_USER_VERBS_CMD_CREATE_XSRQ, sizeof(struct ib_uverbs_create_xsrq),
         sizeof(struct ib_uverbs_create_srq_resp)},
        {IB_USER_VERBS_CMD_CREATE_QP, sizeof(struct ib_uverbs_create_qp),
         sizeof(struct ib_uverbs_create_qp_resp)},
    };
    for (size_t i = 0; i < LENGTH(sizes); i++)
        if (sizes[i].command == call->command && sizes[i].request <= in_size &&
            sizes[i].response <= out_size) {
            call->in = (const char *)call->request + sizes[i].request;
            call->in_size = in_size - sizes[i].request;
            call->out = (char *)call->response + sizes[i].response;
            call->out_size = out_size - sizes[i].response;
        }
}

static void *response_of(uint64_t address) {
    return (void *)(uintptr_t)address;
}

static int execute_written(const void *command) {
    const struct ib_uverbs_cmd_hdr *const header = command;
    struct stub_call call = {.command = header->command, .handle = ++last_handle};
    if (header->command & EXTENDED) {
        const struct ib_uverbs_ex_cmd_hdr *const ex = (const void *)(header + 1);
        call.request = ex + 1;
        call.response = response_of(ex->response);
        call.in = (const char *)call.request + header->in_words * 8;
        call.in_size = ex->provider_in_words * 8u;
        call.out = (char *)call.response + header->out_words * 8;
        call.out_size = ex->provider_out_words * 8u;
    } else {
        call.request = header + 1;
        if (header->out_words > 0) {
            call.response = response_of(*(const uint64_t *)call.request);
            memset(call.response, 0, header->out_words * 4u);
        }
        split(&call, header->in_words * 4u - sizeof(*header), header->out_words * 4u);
    }
    if (device.max_qp == 0) {
        device = usual_limits;
        stub_driver()->describe(&device);
    }
    // The driver's part may be shorter than the structure of this kernel's headers.
    uint64_t made[64] = {0};
    void *const out = call.out;
    call.out = made;
    int error = execute_call(&call);
    if (!error)
        error = stub_driver()->complete(&call);
    if (!error && call.out_size > 0)
        memcpy(out, made, call.out_size < sizeof(made) ? call.out_size : sizeof(made));
    return error;
}

// ---- functions of the C library ------------------------------------------------------------

static enum device opened_by(int fd) {
    return fd >= 0 && fd < MAX_DESCRIPTORS ? device_of[fd] : NONE;
}

static enum device device_at(const char *path) {
    if (!path || strncmp(path, "/dev/infiniband/", 16) != 0)
        return NONE;
    return strcmp(path, "/dev/infiniband/rdma_cm") == 0 ? CM : UVERBS;
}

// libfabric waits for events of librdmacm with epoll, which /dev/null does not support.
static const char *redirected(const char *path) {
    const enum device device = device_at(path);
    return device == NONE ? path : device == CM ? "/dev/random" : "/dev/null";
}

static int remember(const char *path, int fd) {
    if (fd >= 0 && fd < MAX_DESCRIPTORS)
        device_of[fd] = device_at(path);
    return fd;
}

int open(const char *path, int flags, ...) {
    va_list list;
    va_start(list, flags);
    const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0;
    va_end(list);
    return remember(path, STUB_NEXT(open)(redirected(path), flags, mode));
}
int open64(const char *path, int flags, ...) __attribute__((alias("open")));

int stat(const char *restrict path, struct stat *restrict found) {
    return STUB_NEXT(stat)(redirected(path), found);
}
int stat64(const char *restrict path, struct stat64 *restrict found) {
    return STUB_NEXT(stat64)(redirected(path), found);
}

int close(int fd) {
    stub_close_netlink(fd);
    if (opened_by(fd) != NONE)
        device_of[fd] = NONE;
    return STUB_NEXT(close)(fd);
}

ssize_t write(int fd, const void *data, size_t length) {
    const enum device opened = opened_by(fd);
    if (opened == NONE)
        return STUB_NEXT(write)(fd, data, length);
    const int error = opened == CM ? stub_execute_cm(fd, data, stub_driver()->is_iwarp)
                                   : execute_written(data);
    if (error) {
        errno = error;
        return -1;
    }
    return (ssize_t)length;
}

// Keeps memory that the user-space driver, which calls from `caller`, has got.
static void *keep(void *address, size_t size, const void *caller) {
    Dl_info info;
    if (dladdr(caller, &info) && strstr(info.dli_fname, "-rdmav") && address != MAP_FAILED &&
        of_driver_count < MAX_PAGES)
        of_driver[of_driver_count++] = (struct memory){address, size};
    return address;
}

size_t stub_memory(void *copy, size_t size) {
    size_t length = 0;
    if (size == 0)
        of_driver_count = 0;
    for (size_t i = 0; i < of_driver_count && length + of_driver[i].size <= size; i++) {
        memcpy((char *)copy + length, of_driver[i].address, of_driver[i].size);
        length += of_driver[i].size;
    }
    return length;
}

void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
    const void *const caller = __builtin_return_address(0);
    const size_t page = (size_t)offset >> 20;
    if (opened_by(fd) == NONE)
        return keep(STUB_NEXT(mmap)(address, length, protection, flags, fd, offset), length,
                    caller);
    if (page > 0 && page <= page_count && length <= pages[page - 1].size)
        return keep(pages[page - 1].address, length, caller);
    return keep(STUB_NEXT(mmap)(NULL, length, PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0),
                length, caller);
}
void *mmap64(void *, size_t, int, int, int, off_t) __attribute__((alias("mmap")));

void *memalign(size_t alignment, size_t size) {
    void *const made = STUB_NEXT(memalign)(alignment, size);
    return made ? keep(made, size, __builtin_return_address(0)) : NULL;
}
int posix_memalign(void **memory, size_t alignment, size_t size) {
    const int error = STUB_NEXT(posix_memalign)(memory, alignment, size);
    if (!error)
        keep(*memory, size, __builtin_return_address(0));
    return error;
}
