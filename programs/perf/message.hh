// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// message.hh -- the messages between the two sides: JSON objects that begin with a word

#ifndef RPMA_PERF_MESSAGE_HH
#define RPMA_PERF_MESSAGE_HH 1

#include "plan.hh"

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

using Json = nlohmann::ordered_json; // keys keep their order

constexpr size_t MESSAGE_SIZE = 16384;
// Greatest operation count of a connection in a message: the longest message has one for each
// connection. One operation every nanosecond of the longest duration is less.
constexpr uint64_t COUNT_MAX = 99'999'999'999'999;
constexpr unsigned PROTOCOL = 3; // version of the messages; the two sides must have the same

// A message of a word, with its members: message("refused", {{"reason", "…"}}).
Json message(std::string_view word, const Json &members = Json::object());
Json message_of(const Plan &plan, std::string_view target = "");

// The message in the received bytes. Throws a Failure unless it is as the schema of its word
// requires: exactly these members, of these types, in their ranges.
Json decode(std::string_view bytes);

// For a decoded message.
Plan plan_of(const Json &plan);
std::vector<std::byte> bytes_of(const std::string &digits);
std::string digits_of(std::span<const std::byte> bytes);
// The text, with characters that a message cannot carry replaced, and truncated to fit.
std::string printable(std::string text);

#endif
