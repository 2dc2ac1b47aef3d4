// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// operations.h -- the memory of the server, the messages that it receives, and what the
// programs report to the test, which compares it with a plain model of memory

#ifndef OPERATIONS_H
#define OPERATIONS_H 1

#include "common.h"

#define AREA 1024 // bytes of each client
#define AREAS 16
#define WORDS_OF_AREA (AREA / 8)
#define COUNTER (WORDS_OF_AREA - 1) // the word of an area that remote atomics change
#define MESSAGES 24 // of a client, with its writes with immediate data; the last one is empty
#define MESSAGE_SIZE 64
// The server's first message describes its memory by two regions: all, and from this offset on.
// The third region is volatile memory, for which the device refuses native persistent flushes.
// The fourth one is the same memory, with a part of the usages.
#define REGIONS 2
#define VOLATILE_REGION 3 // its place after that of the private data
#define LIMITED_REGION 4
#define BARE_REGION 5 // the first and the fourth region, from their descriptors
#define BARE_LIMITED_REGION 6
#define TARGETS 7
#define VOLATILE_SIZE 1024
// It also has the descriptors of peer configurations: those with bit 0 have direct write to
// PMem, those with bit 1 the operations of the device. The usage of the fourth region follows,
// and descriptors of the first and of the fourth one.
#define DESCRIPTORS 4
#define MR_DESCRIPTOR_SIZE 21 // rpma_mr_get_descriptor_size(3)
#define DESCRIPTORS_SIZE (DESCRIPTORS + 1 + 2 * MR_DESCRIPTOR_SIZE)
#define DESCRIPTION_SIZE 192
#define SECOND_REGION 512
#define OWN (AREAS * AREA + MESSAGES * MESSAGE_SIZE) // the offset of this message
#define REFUSALS_MAX 8                               // of posts, after which a program fails

struct message {
    bool is_write; // with immediate data
    uint32_t size, imm, checksum;
};

extern struct memory server_memory;

void report_listening(void);
void report_client(unsigned area); // that the server has accepted
void report_sent(unsigned area, const struct message *message);
void report_received(const struct message *message);
// Private data that one side sends, and the same data as the other side has received it: with
// zeros at its end.
void report_private_data(bool by_server, const struct rpma_conn_private_data *data);
void check_private_data(bool by_server, const struct rpma_conn_private_data *data);
// The words of the server's memory may have any values from now on, or must have these ones
// also after a power failure.
void report_changed(unsigned first, unsigned count);
void report_safe(unsigned first, unsigned count, const uint64_t *values);
// The same for one word, as soon as the other one has its value.
void report_ordered(unsigned word, uint64_t value, unsigned other, uint64_t other_value);
void report_broken(const char *what);
// How many receives the server has posted to a connection, and how many have completed.
void report_receives(unsigned posted, unsigned completed);

// private_data.c
void send_private_data(struct rpma_peer *peer, const struct arguments *args);
void reply_private_data(struct rpma_conn_req *req, bool is_set_up);

#endif // OPERATIONS_H
