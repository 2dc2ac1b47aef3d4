// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// questions.hh -- questions that are asked over connections to the server

#pragma once

#include "session.hh"

#include <functional>

// The results of a question, by name.
using Results = std::vector<std::pair<std::string, std::string>>;

struct Question {
    const char *name; // also the prefix of the names of its results
    std::function<Results(Session &)> ask;
    bool is_promise = false; // of librpma, otherwise devices may differ
};

// questions.cc, timing.cc, promises.cc
const std::vector<Question> &questions();
const std::vector<Question> &timings();
const std::vector<Question> &promises();
