// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// truth.h -- what the parts of the program share.

#ifndef TRUTH_H
#define TRUTH_H 1

#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>

extern struct sockaddr_in own_address;

void says(const char *question, int ret);
void returns(const char *question, int ret);
void makes(const char *question, const void *object);
void is(const char *question, long long value);
void is_not_asked(const char *question);
// A step that is no question; the program ends if it fails.
void must(bool good, const char *what);
struct sockaddr_in address_of(const char *text);

// Only with the fakes: makes the device like rdma_rxe or like siw, and lets a message "arrive".
void prepare_fakes(bool as_siw) __attribute__((weak));
void fake_arrival(struct rdma_event_channel *channel, enum rdma_cm_event_type type,
                  const void *data, uint8_t len) __attribute__((weak));

struct rdma_cm_id *new_id(struct rdma_event_channel *channel);
struct rdma_cm_id *bound_id(void); // at own_address, so it has a device

struct stand {
    struct rdma_cm_id *id;
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
};
struct stand stand_up(void);
void take_down(struct stand *s);
struct ibv_qp_init_attr_ex qp_attr(const struct stand *s);

void ask_addresses(void);
void ask_cm(void);
void ask_device(void);
void ask_mr(void);
void ask_cq(void);
void ask_srq(void);
void ask_qp(void);
void ask_order(void);
void ask_connection(void);

#endif // TRUTH_H
