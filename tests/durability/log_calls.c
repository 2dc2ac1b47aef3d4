// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// log_calls.c -- the functions of librpma and of the C library that the programs of example 14
// call, besides those of calls.c and services.c. The linker's --wrap replaces them

#include "calls.h"

#include <fcntl.h>
#include <librpma.h>
#include <rdma-sim.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

// ---- the C library

// -Dpoll=wait_for_descriptors
int wait_for_descriptors(struct pollfd *descriptors, unsigned long count, int milliseconds);
int wait_for_descriptors(struct pollfd *descriptors, unsigned long count, int milliseconds) {
    handle_poll(this_program);
    return rdma_sim_poll(descriptors, count, milliseconds);
}

int __wrap_getc(FILE *stream);
int __wrap_getc(FILE *stream) {
    (void)stream;
    return next_byte(this_program);
}

ssize_t __wrap_getrandom(void *buffer, size_t size, unsigned flags);
ssize_t __wrap_getrandom(void *buffer, size_t size, unsigned flags) {
    (void)flags;
    for (size_t i = 0; i < size; i++)
        ((char *)buffer)[i] = (char)rdma_sim_random();
    return (ssize_t)size;
}

// A lock of the open file description, which the kernel keeps until the descriptor is closed.
int __real_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...) {
    va_list values;
    va_start(values, command);
    void *const argument = va_arg(values, void *);
    va_end(values);
    const int ret = __real_fcntl(fd, command, argument);
    if (!ret && command == F_OFD_SETLK) {
        const struct flock *const lock = argument;
        handle_lock(this_program, fd, (size_t)lock->l_start,
                    (size_t)(lock->l_start + lock->l_len));
    }
    return ret;
}

WRAPS(int, close, int fd) {
    handle_close(this_program, fd);
    return __real_close(fd);
}

// The reader maps the logs.
WRAPS(void *, mmap, void *address, size_t size, int protection, int flags, int fd,
      off_t offset) {
    static unsigned logs;
    if (fd >= 0)
        return memory_of((int)logs++) + offset;
    return __real_mmap(address, size, protection, flags, fd, offset);
}

// The log of the library.
__attribute__((format(printf, 2, 3))) int __wrap_fprintf(FILE *stream, const char *format, ...);
int __wrap_fprintf(FILE *stream, const char *format, ...) {
    char text[1024];
    va_list values;
    va_start(values, format);
    const int length = vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    if (strstr(text, "*ERROR* "))
        handle_log(this_program, text);
    fputs(text, stream);
    return length;
}

// ---- connections

static char connecting_to[16]; // the address

WRAPS(int, rpma_conn_req_new, struct rpma_peer *peer, const char *addr, const char *port,
      const struct rpma_conn_cfg *cfg, struct rpma_conn_req **req) {
    snprintf(connecting_to, sizeof(connecting_to), "%s", addr);
    return __real_rpma_conn_req_new(peer, addr, port, cfg, req);
}

WRAPS(int, rpma_conn_req_connect, struct rpma_conn_req **req,
      const struct rpma_conn_private_data *pdata, struct rpma_conn **conn) {
    uint32_t number = 0;
    const int ret = __real_rpma_conn_req_connect(req, pdata, conn);
    if (!ret)
        (void)rpma_conn_get_qp_num(*conn, &number);
    handle_connection(this_program, ret ? NULL : *conn, number, connecting_to);
    return ret;
}

WRAPS(int, rpma_conn_next_event, struct rpma_conn *conn, enum rpma_conn_event *event) {
    const int ret = __real_rpma_conn_next_event(conn, event);
    if (ret != RPMA_E_NO_EVENT)
        handle_event(this_program, conn, !ret && *event == RPMA_CONN_ESTABLISHED);
    return ret;
}

WRAPS(int, rpma_conn_delete, struct rpma_conn **conn) {
    handle_delete(this_program, *conn);
    return __real_rpma_conn_delete(conn);
}

WRAPS(int, rpma_post, struct rpma_conn *conn, const struct rpma_work *work, uint32_t count,
      uint32_t *done) {
    handle_post(this_program, conn);
    return __real_rpma_post(conn, work, count, done);
}
