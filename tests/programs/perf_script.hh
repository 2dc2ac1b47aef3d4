// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// perf_script.hh -- runs a server or a client of rpma-perf over the fakes of the unit tests,
// against a scripted peer that can violate the protocol. The script also sets the time.

#pragma once

#include "event_loop.hh"
#include "load_connection.hh"
#include "message.hh"

#include <atomic>
#include <map>
#include <span>
#include <string>
#include <vector>

// cmocka's macro fail() has to be defined after these.
extern "C" {
#include "unit.h"
}

#define GREETING "rpma-perf 4 control 0 0"

// An action of the peer, executed when the tested side is idle.
struct ScriptStep {
    void (*act)(const std::string &text);
    std::string text{};
    std::string after{};     // executed only after this message of the tested side; "": any
    bool takes_time = false; // advances the clock to that message; otherwise only threads run
};

// Both times begin at a value that needs more than 32 bits.
constexpr uint64_t START = UINT64_C(5000000000000);

// Packed data: a region of 4096 bytes for every usage, without native operations.
constexpr char TARGET[] = "f50101160200"
                          "0000010000000000"
                          "0010000000000000"
                          "4d000000ff00"
                          "00a0";
extern std::atomic<uint64_t> now;
uint64_t elapsed_ms();
extern std::vector<Json> sent_messages; // all messages of the tested side
// The load's operations complete in groups of group_size, each after the next group time, so
// that latencies do not depend on the threads.
extern std::span<const uint64_t> group_times;
extern size_t group_size;
extern uint64_t cpu_step; // added to the processor time at each query

// ---- actions of the other side -------------------------------------------------------------

void request(const std::string &greeting);
void request_data(const std::string &number);  // for the latest "ready"
void establish(const std::string &greeting);   // the oldest pending connection
void refuse(const std::string &greeting);      // the same
void fail_connecting(const std::string &type); // the same, with this event
void ignore_connecting(const std::string &);   // the same
void send_message(const std::string &text);
void pause_50_s(const std::string &);
void disconnect_control(const std::string &);
void disconnect_connection(const std::string &number);      // of the load, "": the first
void send_unexpected_event(const std::string &);            // on the control connection
void send_unexpected_connection_event(const std::string &); // on the load's first connection
void fail_receive(const std::string &status);               // of the control connection
void fail_device(const std::string &);    // its device no longer executes reads
void stop_receiving(const std::string &); // as if it had posted no receives
void resume_receiving(const std::string &);
void interrupt(const std::string &);
// Selects the server's session for the next actions.
void select_session(const std::string &number);
// Clears the posts that the fakes recorded, because their number is limited.
void clear_posts(const std::string &);
// Waits until all groups have completed and the next operation is posted.
void finish_groups();

// Named lists of steps. A script consists of these names, separated by commas.
using Actions = std::map<std::string, std::vector<ScriptStep>>;
std::vector<ScriptStep> script_of(const Actions &actions, const std::string &script);

// ---- running one side ----------------------------------------------------------------------

struct Outcome {
    std::string text;    // its output
    std::string failure; // text of the exception; "": none
    int status;
};
Outcome run_server_with(const Options &options, const std::vector<ScriptStep> &script);
Outcome run_client_with(const Options &options, const std::vector<ScriptStep> &script);

void expect_equal(const char *name, const std::string &found, const std::string &wanted);
void expect_part(const char *name, const std::string &text, const std::string &part);

// The messages of the tested side, with their reasons or numbers.
std::string sent_summary();

Plan plan_of_test(std::string_view operation, Plan plan = {.size = 8});
std::string text_of(std::string_view type, const Json &members = Json::object());
