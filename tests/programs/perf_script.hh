// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// perf_script.hh -- a server or a client of rpma-perf runs over the fakes of the unit tests,
// and a script plays the other side, which may do anything. The script also sets the time.

#ifndef PERF_SCRIPT_HH
#define PERF_SCRIPT_HH 1

#include "connection.hh"
#include "message.hh"
#include "session.hh"
#include "sides.hh"

#include <atomic>
#include <map>
#include <span>
#include <string>
#include <vector>

// cmocka's macro fail() has to be defined after these.
extern "C" {
#include "unit.h"
}

#define GREETING "rpma-perf 3 control 0 0"

// The action of the other side when the tested side waits and is idle.
struct Turn {
    void (*act)(const std::string &text);
    std::string text{};
    std::string after{};     // the word of the latest message before it; "": any
    bool takes_time = false; // time passes until that message; otherwise only threads are
                             // waited for
};

// Neither the time nor the processor time fits in 32 bits.
constexpr uint64_t START = UINT64_C(5000000000000);

// Packed data: a region of 4096 bytes for every usage; nothing is served natively.
constexpr char TARGET[] = "f50101160200"
                          "0000010000000000"
                          "0010000000000000"
                          "4d000000ff00"
                          "00a0";
extern std::atomic<uint64_t> now;
uint64_t elapsed_ms();
extern std::vector<Json> said; // all messages of the tested side
// The load's operations complete in groups: when as many are outstanding as a group has, its
// time passes. So each of them takes that time, whatever the threads do.
extern std::span<const uint64_t> group_times;
extern size_t group_size;
extern uint64_t cpu_step; // each question for the processor time adds a step

// ---- actions of the other side -------------------------------------------------------------

void request(const std::string &greeting);
void request_data(const std::string &number); // of the load with the latest "ready"
void establish(const std::string &greeting);  // the oldest connection that comes up
void refuse(const std::string &greeting);     // the same
void lose(const std::string &type);           // the same, by this event
void let_hang(const std::string &);           // the same
void say(const std::string &text);
void pause_50_s(const std::string &);
void leave(const std::string &);
void leave_connection(const std::string &number); // a connection of the load, "": the first
void stir(const std::string &);               // the connection has an event that means nothing
void stir_connection(const std::string &);    // the same has an event that means nothing
void fail_receive(const std::string &status); // of the control connection
void die(const std::string &);                // the device answers no more reads
void hold(const std::string &);               // it takes no messages, as without receives
void go_on(const std::string &);              // it takes messages again
void interrupt(const std::string &);
// The session of a server that the next actions are of.
void play_with(const std::string &number);
// The record of the fakes is short.
void forget(const std::string &);
// Waits until all groups have completed and the next operation is posted.
void finish_groups();

// A script of words separated by commas; each word is a list of turns.
using Words = std::map<std::string, std::vector<Turn>>;
std::vector<Turn> script_of(const Words &words, const std::string &script);

// ---- running one side ----------------------------------------------------------------------

struct Outcome {
    std::string text;    // its output
    std::string failure; // what it threw; "": nothing
    int status;
};
Outcome run_server_with(const Options &options, const std::vector<Turn> &script);
Outcome run_client_with(const Options &options, const std::vector<Turn> &script);

void expect_equal(const char *name, const std::string &found, const std::string &wanted);
void expect_part(const char *name, const std::string &text, const std::string &part);

// The messages of the tested side, with their reasons or counts.
std::string words_said();

Plan plan_of_test(std::string_view operation, Plan plan = {.size = 8});
std::string text_of(std::string_view word, const Json &members = Json::object());

#endif
