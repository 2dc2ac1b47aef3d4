// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// script.h -- what the steps of a line of input are made of: values by name, members of
// structures by name, operations and receives

#ifndef SCRIPT_H
#define SCRIPT_H 1

#include "world.h"

#define SCRIPT_REMOTE_ADDR 0x123456780u
#define SCRIPT_REMOTE_SIZE 64u
#define SCRIPT_RKEY 0x5ec4e7e4u

// A number, or the names of enumerators with '|' between them.
uint64_t value_of(const char *text);

struct script_field {
    const char *name; // NULL behind the last one
    size_t offset, size;
};
extern const struct script_field script_device_fields[];
// Sets members: "NAME=VALUE NAME=VALUE".
void script_set_fields(void *base, const struct script_field *fields, const char *text);

// What the next call takes.
extern struct rpma_work script_work[4];
extern struct rpma_receive script_receives[4];
extern unsigned script_work_count, script_receive_count;

void script_add_work(const char *text);    // "KIND NAME=VALUE …"
void script_add_writes(const char *text);  // so many of 24 bytes, from different places
void script_add_receive(const char *text); // "NAME=VALUE …"

#endif // SCRIPT_H
