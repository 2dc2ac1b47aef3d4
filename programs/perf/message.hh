// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// message.hh -- the messages between the two sides: JSON objects with a type, "word"

#pragma once

#include "plan.hh"

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

using Json = nlohmann::ordered_json; // keys keep their order

constexpr size_t MESSAGE_SIZE = 16384;
// Limit of a connection's operation count, so that the longest message, with one count for each
// connection, fits. It exceeds one operation in each nanosecond of the longest duration.
constexpr uint64_t COUNT_MAX = 99'999'999'999'999;
constexpr unsigned PROTOCOL = 4; // version of the messages; the two sides must have the same

// A message of a type, with its members: message("refused", {{"reason", "…"}}).
Json message(std::string_view type, const Json &members = Json::object());
Json plan_message(const Plan &plan, std::string_view target = "");

// Parses a received message. Throws a Failure unless the message has exactly the members of its
// schema, with values of their types and in their ranges.
Json decode(std::string_view bytes);

// Throws a Failure if the settings of the decoded message conflict.
Plan parse_plan(const Json &plan);
std::vector<std::byte> from_hex(const std::string &hex);
std::string to_hex(std::span<const std::byte> bytes);
// The text, truncated, and with characters replaced that a message must not contain.
std::string printable(std::string text);
