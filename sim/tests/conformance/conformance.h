// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// conformance.h -- prints results of cases, and creates IDs, for the programs of this folder

#ifndef CONFORMANCE_H
#define CONFORMANCE_H 1

#include <arpa/inet.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
enum { FLUSH_GLOBAL = 1 << 8, FLUSH_PERSISTENT = 1 << 9 }; // access flags of rdma-core 45
enum { SEND_FLUSH = 1 << 11, SEND_ATOMIC_WRITE = 1 << 12 };

// ---- results -------------------------------------------------------------------------------

static inline const char *name_of(int error) {
    const char *name = strerrorname_np(error < 0 ? -error : error);
    return name ? name : "?";
}

static inline void print_value(const char *name, long long value) {
    printf("%s\t%lld\n", name, value);
}

// The result of a function that returns -1 and sets errno.
static inline void print_status(const char *name, int ret) {
    printf("%s\t%d%s%s\n", name, ret, ret == -1 ? " " : "", ret == -1 ? name_of(errno) : "");
}

// The result of a function that returns an error number.
static inline const char *result_of(int ret) {
    return ret == 0 ? "0" : ret < 0 ? "negative" : name_of(ret);
}

static inline void print_result(const char *name, int ret) {
    printf("%s\t%s\n", name, result_of(ret));
}

// The result of a function that returns an object, or NULL and sets errno.
static inline bool print_object(const char *name, const void *object) {
    printf("%s\t%s%s\n", name, object ? "made" : "NULL ", object ? "" : name_of(errno));
    return object;
}

// Executes a step that prepares a case. A failure ends the program.
#define MUST(step) must((step) == 0, #step)
static void must(bool good, const char *what) {
    if (good)
        return;
    fprintf(stderr, "conformance: %s failed: %s, so later cases cannot run\n", what,
            strerror(errno));
    exit(1);
}

static union address {
    struct sockaddr any;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
} own; // the address of the device

static bool set_address(const char *address) {
    own.in.sin_family = AF_INET;
    return inet_pton(AF_INET, address, &own.in.sin_addr) == 1;
}

static struct rdma_cm_id *new_id(void) {
    struct rdma_cm_id *id = NULL;
    MUST(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP));
    return id;
}

static struct rdma_cm_id *bound_id(void) {
    struct rdma_cm_id *id = new_id();
    MUST(rdma_bind_addr(id, &own.any));
    must(id->verbs, "finding the device of the address");
    return id;
}

#endif // CONFORMANCE_H
