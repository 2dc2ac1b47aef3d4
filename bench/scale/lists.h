// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// lists.h -- the kind of list that is posted, and the methods that are written in verbs

#ifndef LISTS_H
#define LISTS_H 1

#include "common.h"

enum { MAX_REQUESTS = 128 };

extern struct kind {
    bool flushes;    // each write is followed by an emulated flush
    unsigned bytes;  // size of each write
    unsigned length; // number of writes, or of pairs of write and flush, in a list
} kind;

void open_by_hand(const char *address, const char *port);
void build_by_hand(void);
void post_by_hand(void);
void post_built_by_hand(void);
void wait_by_hand(void);

#endif /* LISTS_H */
