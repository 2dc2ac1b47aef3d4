// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// queue_objects.h -- the objects and the lists of requests of the questions

#ifndef QUEUE_OBJECTS_H
#define QUEUE_OBJECTS_H 1

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "stub.h"

enum { MAX_LIST = 4, MAX_SGES = 64, MAX_ENTRIES = 4096 };

extern struct ibv_context *context;
extern struct ibv_pd *pd;
extern struct ibv_cq *cq;
extern struct ibv_mr *mr;
extern struct ibv_device_attr device;
extern _Alignas(4096) char memory[65536];

const char *name_of(int error);

// The result of a post. `bad` is the request of the list that bad_wr names: its number from 1,
// 0 for NULL, -1 if the call did not set it.
struct result {
    int error, bad;
};

void print_created(const char *name, const void *object);

// Some drivers do not check a request, and the process may end. Returns true in a new process,
// which prints the result. The other one prints the signal that ends the new one.
bool in_child(const char *name);

void exit_child(void);

struct shape { // of a queue pair
    uint32_t sends, receives, sges, receive_sges, inlined;
    uint64_t send_ops; // of the builders; 0: none
    struct ibv_srq *srq;
};

struct ibv_qp *create_qp(const struct shape *shape, struct ibv_qp_cap *cap);

// The QP that connected ones send to. Usually there is none: requests stay in the queue.
enum { NO_QP = 0xfffffe };
extern uint32_t destination;
// How long connected QPs repeat a request: without a limit, or as briefly as they can.
extern bool gives_up;

bool set_state(struct ibv_qp *qp, enum ibv_qp_state state);

extern const struct shape usual;

// On iWARP the connection manager connects QPs; the stub lets ibv_modify_qp() do it.
extern bool needs_cm;

// The peer then leaves the connection without a message: requests stay in the queue.
void connect_to_nothing(struct ibv_qp *qp);

// Moves a QP through the states up to `last`.
struct ibv_qp *moved(struct ibv_qp *qp, enum ibv_qp_state last);

struct ibv_qp *new_qp(enum ibv_qp_state state, struct ibv_qp_cap *cap);

struct ibv_srq *create_srq(uint32_t receives, uint32_t sges, struct ibv_srq_attr *attr);

struct sends {
    struct ibv_send_wr wrs[MAX_LIST];
    struct ibv_sge sges[MAX_SGES];
};

// A list of writes of 8 bytes, without completions.
void fill_sends(struct sends *list, size_t count);

int number_of(const void *bad, const void *untouched, const void *first, size_t size);

struct result post_sends(struct ibv_qp *qp, struct sends *list);

struct result post_writes(struct ibv_qp *qp, size_t count);

// Posts to `qp`, or to `srq` if it is not NULL, `count` receives, of which number `wrong` has
// `sges` SGEs.
struct result post_receives(struct ibv_qp *qp, struct ibv_srq *srq, size_t count, size_t wrong,
                            uint32_t sges);

int fill_queue(struct ibv_qp *qp);

int fill_receives(struct ibv_qp *qp, struct ibv_srq *srq);

// The stub writes a completion as the device would. The fabric executes requests itself.
extern bool (*stub_write)(const struct stub_completion *completion);

// completion_questions.c
void ask_completions(void);

#endif // QUEUE_OBJECTS_H
