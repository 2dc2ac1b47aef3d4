// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// loopback.h -- lets a program be both sides of its connection.
//
// On a device the calls below do nothing: the device is the loop. Over the fakes of tests/unit,
// which only record, they do with the memory what was posted and deliver the events. The fakes
// are looked up at run time, so that one binary runs in both places.

#ifndef LOOPBACK_H
#define LOOPBACK_H 1

#include <stdbool.h>
#include <stdint.h>

bool loopback_open(void); // false: no fakes, a real device
// A request has come in on this endpoint, with this private data.
void loopback_request(int ep_fd, const void *data, uint8_t len);
// A connection is up, closed, refused or out of reach.
void loopback_established(int conn_fd, const void *data, uint8_t len);
void loopback_disconnected(int conn_fd);
void loopback_rejected(int conn_fd);
void loopback_unreachable(int conn_fd);
// Carries out what was posted since the last call, and completes it.
void loopback_run(void);
// What the library did wrong or left behind; "" is right.
const char *loopback_close(void);

#endif // LOOPBACK_H
