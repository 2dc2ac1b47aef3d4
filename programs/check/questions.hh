// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// questions.hh -- questions that are asked over connections to the server

#pragma once

#include "session.hh"

#include <functional>
#include <span>

constexpr int ALWAYS = RPMA_F_COMPLETION_ALWAYS, ON_ERROR = RPMA_F_COMPLETION_ON_ERROR;

// The results of a question, by name.
using Results = std::vector<std::pair<std::string, std::string>>;

struct Question {
    const char *name; // also the prefix of the names of its results
    std::function<Results(Session &)> ask;
    bool is_promise = false; // of librpma, otherwise devices may differ
};

// questions.cc, verbs.cc, timing.cc, promises.cc
const std::vector<Question> &questions();
const std::vector<Question> &verbs_questions();
const std::vector<Question> &timings();
const std::vector<Question> &promises();

// requests.cc: the properties of sim/device/devices.tsv that posts on a connection show
Json request_attributes(Session &session);

// verbs.cc: a part of the memory of this side, and a signaled request with SGEs, which the
// caller keeps, to the memory of the other side.
ibv_sge sge_of(const Connection &c, size_t offset, uint32_t size);
ibv_send_wr request_of(const Connection &c, ibv_wr_opcode opcode, std::span<ibv_sge> sges,
                       size_t remote_offset = 0);

std::string yes_or_no(bool is_true);
// The status of the completions of an operation: "ok", or the first failure.
std::string outcome(rpma::status posted, Connection &connection, size_t count = 1,
                    double limit = 5);
