// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// load.hh -- operations whose data are checked, for commands that do many at once

#ifndef PEER_LOAD_HH
#define PEER_LOAD_HH 1

#include "peer.hh"

#include <random>

// The layout of a worker's local region; its share of the remote region is REMOTE bytes.
constexpr size_t REMOTE = 8192, MESSAGE = 1024;
constexpr size_t BACK = REMOTE;        // data that are read back
constexpr size_t SEND_AT = 2 * REMOTE; // a message
constexpr size_t RECV_AT = SEND_AT + MESSAGE;
// The echo's two places for messages, by turns.
constexpr size_t echo_at(uint64_t round) {
    return REMOTE + round % 2 * MESSAGE;
}

// Steps of Worker::any_operation().
enum { WRITES = 1 << 0, ATOMIC_WRITES = 1 << 1, MESSAGES = 1 << 2, EVERY_STEP = (1 << 3) - 1 };

struct Worker {
    rpma_conn *conn = nullptr;
    rpma_cq *cq = nullptr;
    rpma_mr_local *mr = nullptr;
    rpma_mr_remote *remote = nullptr;
    size_t share = 0; // offset of its share of the remote region
    char *base = nullptr;
    std::minstd_rand random;
    bool without_imm = false; // the device has no immediate data
    int without = 0;          // steps that it leaves out
    int tried = 0;            // steps that it has done
    uint64_t rounds = 0;
    uint64_t seed = 0;
    const char *doing = "echo";
    ibv_wc_status status = IBV_WC_SUCCESS; // of the last completion

    // Writes, flushes and reads back.
    void write_pattern(size_t roff, size_t len, uint64_t number);
    // The other side's echo returns the message, or the immediate data.
    void exchange();
    // Performs a random operation and counts it.
    void any_operation();
    // An empty message ends the echo.
    void say_goodbye();
    // Sends messages back until an empty one arrives. The first receive is posted.
    void echo();

  private:
    size_t pick(size_t below) { return random() % below; }
    ibv_wc finish();
    void read_back(size_t roff, const char *wanted, size_t len);
    void write_atomically();
    void send(size_t at, size_t len, bool with_imm, uint32_t imm);
};

// Sends a message, or a message with immediate data.
void send(rpma_conn *conn, rpma_mr_local *mr, size_t at, size_t len, bool with_imm,
          uint32_t imm);

#endif
