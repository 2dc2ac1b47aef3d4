// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// provider.h -- libibverbs and librdmacm that do nothing, and count who called them
//
// Posting, polling and waiting are not counted: they return at once, so that what is measured
// is the way to them. Every other call succeeds and, after the first reset, leaves one count
// behind.

#ifndef PROVIDER_H
#define PROVIDER_H 1

#include <stddef.h>
#include <stdint.h>

struct ibv_context;
struct ibv_qp;

// Polling a CQ of so many entries yields nothing, polling any other yields one completion.
enum { PROVIDER_EMPTY_CQ = 3 };

// A send queue of so many entries is full.
enum { PROVIDER_FULL_SQ = 5 };

// The device at this address flushes and writes atomically by itself. Only with
// PROVIDER_NATIVE: where the headers know how.
#define PROVIDER_NATIVE_ADDRESS "127.0.0.2"

struct provider_count {
    const char *call;
    unsigned times;
};

// The calls since the last reset, in the order in which they came first; ends with call NULL.
const struct provider_count *provider_counts(void);
void provider_reset(void);

// For the provider itself: counts a call, makes an object of zeros that is never freed.
void provider_count(const char *call);
void *provider_object(size_t size);
struct ibv_context *provider_device(void);
struct ibv_context *provider_context_of(struct ibv_context *device, uint32_t max_send_wr);
struct ibv_context *provider_native_device(void);
struct ibv_qp *provider_native_qp(uint64_t operations); // IBV_QP_EX_WITH_*

#endif /* PROVIDER_H */
