// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// provider.h -- libibverbs and librdmacm that do nothing and count the calls
//
// Posting, polling and waiting return at once and are not counted, so that a measurement shows
// only the code in front of them. Other calls succeed and are counted after the first reset.

#ifndef PROVIDER_H
#define PROVIDER_H 1

#include <stddef.h>
#include <stdint.h>

struct ibv_context;
struct ibv_qp;

// A poll of a CQ of this size returns no completion, a poll of any other CQ returns one.
enum { PROVIDER_EMPTY_CQ = 3 };

// A send queue of this size is full.
enum { PROVIDER_FULL_SQ = 5 };

// The device at this address has native flush and atomic write. Defined for PROVIDER_NATIVE
// only, which needs headers that declare these operations.
#define PROVIDER_NATIVE_ADDRESS "127.0.0.2"

struct provider_count {
    const char *call;
    unsigned times;
};

// The counts since the last reset, in the order of the first calls; ends with call NULL.
const struct provider_count *provider_counts(void);
void provider_reset(void);

// For the provider itself: count a call, and create a zeroed object that is never freed.
void provider_count(const char *call);
void *provider_object(size_t size);
struct ibv_context *provider_device(void);
struct ibv_context *provider_context_of(struct ibv_context *device, uint32_t max_send_wr);
struct ibv_context *provider_native_device(void);
struct ibv_qp *provider_native_qp(uint64_t operations); // IBV_QP_EX_WITH_*

// A function of the provider that is counted, and succeeds.
#define SUCCEEDS(call, ...)       \
    int call(__VA_ARGS__) {       \
        provider_count(__func__); \
        return 0;                 \
    }

#endif /* PROVIDER_H */
