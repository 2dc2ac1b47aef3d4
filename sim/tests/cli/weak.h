// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// weak.h -- the two sides of a connection, and the programs of weak_programs.c that use it

#pragma once

#include <fcntl.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define GRH 40
#define QKEY 0x11111111
#define DATAGRAMS 4
#define QUEUE 8 // requests
#define RECORDS 4
#define RECORD 64 // bytes
#define FLAGGED "! is the flag of a text that has bytes in all words of a record"

struct datagram {
    uint32_t number, amount;
};

// The memory of each side, a region of one of them.
struct memory {
    uint64_t source, target, result, received, sum, ready;
    char records[RECORDS][RECORD];
    uint64_t words[8]; // within two cache lines
    char datagrams[QUEUE][GRH + 4096];
};

struct description {
    uint64_t address;
    uint32_t rkey, ud_number;
};

extern struct rdma_cm_id *id;
extern struct ibv_mr *mr;
extern struct ibv_qp *ud;
extern struct ibv_cq *ud_cq;
extern struct memory *memory;
extern struct description peer;
extern bool is_fixed;

void must(bool is_good, const char *what);
struct rdma_cm_id *next_event(enum rdma_cm_event_type type);
void receive(unsigned slot);
int post_request(enum ibv_wr_opcode opcode, uint64_t *local, uint64_t *remote, uint32_t length,
                 unsigned flags);
struct ibv_wc completion(struct ibv_cq *cq);
void complete_request(enum ibv_wr_opcode opcode, uint64_t *local, uint64_t *remote,
                      uint32_t length);

struct program {
    const char *name;
    void (*client)(void), (*server)(void);
};
extern const struct program PROGRAMS[];
extern const size_t PROGRAM_COUNT;
