// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// message.cc -- the messages between the two sides: JSON objects with a type, "word"

#include "message.hh"

#include "failure.hh"

#include <algorithm>
#include <map>

namespace {

enum class Type { number, flag, text, hex, numbers };

// max: the maximum of a number, or the maximum length of a text or a list
struct Member {
    const char *name;
    Type type;
    uint64_t min{}, max{};
};

using Schema = std::vector<Member>;

constexpr uint64_t TEXT_MAX = 256, REASON_MAX = 512,
                   DIGITS_MAX = 2 * UINT8_MAX; // of packed private data

Schema schema_of_plan() {
    Schema schema;
    for (const Setting &setting : settings)
        schema.push_back({setting.name, Type::number, setting.min, setting.max});
    schema.push_back({"target", Type::hex, 0, DIGITS_MAX}); // for --both
    return schema;
}

const std::map<std::string_view, Schema> &schemas() {
    static const std::map<std::string_view, Schema> all = {
        // of the client
        {"hello", {}},
        {"plan", schema_of_plan()},
        {"begin", {}},
        {"measure", {}},
        {"alive", {}},
        {"stop", {{"done", Type::numbers, 1, CONNECTIONS_MAX}}},
        // of the server
        {"welcome",
         {{"librpma", Type::text, 1, TEXT_MAX},
          {"kernel", Type::text, 1, TEXT_MAX},
          {"device", Type::text, 1, TEXT_MAX},
          {"memory", Type::text, 1, TEXT_MAX},
          {"direct_write", Type::flag},
          {"atomics", Type::flag}}},
        {"ready",
         {{"session", Type::number, 0, UINT64_MAX}, {"target", Type::hex, 2, DIGITS_MAX}}},
        {"ok", {}},
        {"result",
         {{"cpu_ns", Type::number, 0, UINT64_MAX},
          {"operations", Type::number, 0, UINT64_MAX},
          {"ns", Type::number, 0, UINT64_MAX}}},
        {"refused", {{"reason", Type::text, 0, REASON_MAX}}},
    };
    return all;
}

bool is_in_range(const Member &member, uint64_t value) {
    return value >= member.min && value <= member.max;
}

bool is_text(const Json &value, const Member &member, std::string_view allowed) {
    const auto *text = value.get_ptr<const Json::string_t *>();
    return text && is_in_range(member, text->size()) && std::ranges::all_of(*text, [&](char c) {
               return allowed.empty() ? c >= ' ' && c <= '~'
                                      : allowed.find(c) != std::string_view::npos;
           });
}

bool is_valid(const Json &value, const Member &member) {
    switch (member.type) {
    case Type::number:
        return value.is_number_unsigned() && is_in_range(member, value.get<uint64_t>());
    case Type::flag:
        return value.is_boolean();
    case Type::text:
        return is_text(value, member, "");
    case Type::hex:
        return is_text(value, member, "0123456789abcdef") && value.size() == 1 &&
               value.get_ref<const std::string &>().size() % 2 == 0;
    case Type::numbers:
        return value.is_array() && is_in_range(member, value.size()) &&
               std::ranges::all_of(value, [](const Json &count) {
                   return count.is_number_unsigned() && count.get<uint64_t>() <= COUNT_MAX;
               });
    }
    return false;
}

} // namespace

Json message(std::string_view type, const Json &members) {
    Json document = {{"word", type}};
    document.update(members);
    return document;
}

Json plan_message(const Plan &plan, std::string_view target) {
    Json members;
    for (const Setting &setting : settings)
        members[setting.name] = plan.*setting.field;
    members["target"] = target;
    return message("plan", members);
}

Json decode(std::string_view bytes) {
    if (bytes.size() > MESSAGE_SIZE)
        fail("a message of {} bytes is longer than {}", bytes.size(), MESSAGE_SIZE);
    Json document = Json::parse(bytes, nullptr, false);
    if (!document.is_object() || !document.contains("word") || !document["word"].is_string())
        fail("the other side sent an invalid message");
    const auto &type = document["word"].get_ref<const std::string &>();
    const auto found = schemas().find(type);
    if (found == schemas().end())
        fail("the other side sent an unknown message");
    for (const Member &member : found->second)
        if (!document.contains(member.name) || !is_valid(document[member.name], member))
            fail("\"{}\" of the message \"{}\" is missing or out of its range", member.name,
                 type);
    if (document.size() != found->second.size() + 1)
        fail("the message \"{}\" has unknown members", type);
    return document;
}

Plan parse_plan(const Json &message) {
    Plan plan;
    for (const Setting &setting : settings)
        message.at(setting.name).get_to(plan.*setting.field);
    if (const auto conflict = plan.conflict(); !conflict.empty())
        fail("{}", conflict);
    return plan;
}

std::string to_hex(std::span<const std::byte> bytes) {
    std::string hex;
    for (const std::byte byte : bytes)
        hex += fmt::format("{:02x}", static_cast<unsigned>(byte));
    return hex;
}

std::string printable(std::string text) {
    std::ranges::replace_if(
        text, [](char c) { return c < ' ' || c > '~'; }, '?');
    return text.substr(0, REASON_MAX);
}

std::vector<std::byte> from_hex(const std::string &text) {
    std::vector<std::byte> bytes;
    for (size_t i = 0; i < text.size(); i += 2)
        bytes.push_back(static_cast<std::byte>(std::stoul(text.substr(i, 2), nullptr, 16)));
    return bytes;
}
