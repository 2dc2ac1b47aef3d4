// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// perf_messages.cc -- fuzzes the messages of rpma-perf: each input is rejected, or is valid by
// the table below
//
// The table repeats the schema, so that the test detects a missing member or range in
// programs/perf/message.cc.

#include "failure.hh"
#include "message.hh"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <sstream>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

namespace {

constexpr size_t LONGEST = 16384;

#define EXPECT(condition) expect(condition, #condition)
void expect(bool holds, const char *condition) {
    if (holds)
        return;
    std::fprintf(stderr, "expected: %s\n", condition);
    std::abort();
}

bool is_number(const Json &value, uint64_t least, uint64_t most) {
    return value.is_number_unsigned() && value.get<uint64_t>() >= least &&
           value.get<uint64_t>() <= most;
}

template <size_t least, size_t most> bool text(const Json &value) {
    if (!value.is_string())
        return false;
    const auto text = value.get<std::string>();
    return text.size() >= least && text.size() <= most &&
           std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < 0x7f; });
}

template <size_t least> bool packed(const Json &value) {
    return text<least, 510>(value) && value.get<std::string>().size() % 2 == 0 &&
           value.get<std::string>().find_first_not_of("0123456789abcdef") == std::string::npos;
}

bool are_counts(const Json &value) {
    return value.is_array() && value.size() >= 1 && value.size() <= 1024 &&
           std::ranges::all_of(
               value, [](const Json &one) { return is_number(one, 0, 99'999'999'999'999); });
}

using Check = bool (*)(const Json &value);
template <uint64_t least, uint64_t most> bool number(const Json &value) {
    return is_number(value, least, most);
}
bool flag(const Json &value) {
    return value.is_boolean();
}

const std::map<std::string, std::map<std::string, Check>> allowed = {
    {"hello", {}},
    {"begin", {}},
    {"measure", {}},
    {"alive", {}},
    {"ok", {}},
    {"stop", {{"done", are_counts}}},
    {"refused", {{"reason", text<0, 512>}}},
    {"result",
     {{"cpu_ns", number<0, UINT64_MAX>},
      {"operations", number<0, UINT64_MAX>},
      {"ns", number<0, UINT64_MAX>}}},
    {"ready", {{"session", number<0, UINT64_MAX>}, {"target", packed<1>}}},
    {"welcome",
     {{"librpma", text<1, 256>},
      {"kernel", text<1, 256>},
      {"device", text<1, 256>},
      {"memory", text<1, 256>},
      {"direct_write", flag},
      {"atomics", flag}}},
    {"plan",
     {{"operation", number<0, 10>},
      {"size", number<0, 1 << 30>},
      {"depth", number<1, 4096>},
      {"batch", number<1, 4096>},
      {"prepared", number<0, 1>},
      {"elements", number<1, 32>},
      {"inline", number<0, 4096>},
      {"connections", number<1, 1024>},
      {"threads", number<1, 64>},
      {"poll", number<0, 1>},
      {"verify", number<0, 1>},
      {"region", number<0, UINT64_C(1) << 40>},
      {"random", number<0, 1>},
      {"reads", number<0, 100>},
      {"both", number<0, 1>},
      {"rate", number<0, 1000000000>},
      {"target", packed<0>}}},
};

bool is_allowed(const Json &message) {
    const auto word = allowed.find(message.value("word", ""));
    return word != allowed.end() && message.size() == word->second.size() + 1 &&
           std::ranges::all_of(word->second, [&](const auto &member) {
               return message.contains(member.first) && member.second(message[member.first]);
           });
}

bool is_message(const std::string &bytes) {
    if (bytes.size() > LONGEST)
        return false;
    const Json message = Json::parse(bytes, nullptr, false);
    return message.is_object() && message.contains("word") && message["word"].is_string() &&
           is_allowed(message);
}

// The sizes that both sides derive from a plan stay within the limits of their allocations.
void check_plan(const Json &message) {
    Plan plan;
    try {
        plan = parse_plan(message);
    } catch (const Failure &) {
        return; // settings that conflict
    }
    // The order of the members does not matter.
    EXPECT(nlohmann::json(plan_message(plan, message["target"].get<std::string>())) ==
           nlohmann::json(message));
    for (const Setting &setting : settings)
        EXPECT(message[setting.name] == plan.*setting.field);
    EXPECT(plan.depth % plan.batch == 0 && plan.threads <= plan.connections);
    EXPECT(plan.elements <= plan.size || plan.op().is_connect());
    EXPECT(plan.target_size() >= plan.connections * plan.size);
    EXPECT(plan.target_size() <= UINT64_C(1) << 40);
    EXPECT(plan.sends() >= plan.depth && plan.sends() <= 4 * 4096);
}

// Returns whether the bytes are a message. Any exception but a Failure ends the run.
bool check_message(const std::string &bytes) {
    Json message;
    bool is_taken = true;
    try {
        message = decode(bytes);
    } catch (const Failure &why) {
        is_taken = false;
        EXPECT(*why.what() != '\0' && std::string(why.what()).size() < 1024);
        // The reason is sent to the other side, so it has to be a valid message as well.
        EXPECT(is_message(::message("refused", {{"reason", printable(why.what())}}).dump()));
    }
    EXPECT(is_taken == is_message(bytes));
    if (!is_taken)
        return false;
    EXPECT(decode(message.dump()) == message);
    if (message["word"] == "plan")
        check_plan(message);
    if (message["word"] == "ready") {
        const auto target = message["target"].get<std::string>();
        EXPECT(to_hex(from_hex(target)) == target);
    }
    return true;
}

// ---- a run in builds without libFuzzer -----------------------------------------------------

[[maybe_unused]] std::string changed(std::string bytes, const std::vector<std::string> &seeds,
                                     std::mt19937_64 &random) {
    std::istringstream list(
        "\" { } [ ] , : 0 1 - .5 e9 null true \\u0000 \xff \"word\" \"ok\" 4097 "
        "18446744073709551615 18446744073709551616");
    const std::vector<std::string> pieces{std::istream_iterator<std::string>(list), {}};
    const auto below = [&](size_t limit) { return random() % limit; };
    for (size_t changes = 1 + below(4); changes > 0; changes--) {
        const size_t at = below(bytes.size() + 1);
        switch (below(6)) {
        case 0:
            bytes.erase(at, 1 + below(8));
            break;
        case 1:
            bytes.insert(at, pieces[below(pieces.size())]);
            break;
        case 2:
            if (at < bytes.size())
                bytes[at] = static_cast<char>(random());
            break;
        case 3:
        case 4: // a number becomes another one
            if (const size_t digit = bytes.find_first_of("0123456789", at);
                digit != std::string::npos)
                bytes.replace(digit, 1, std::to_string(below(2) ? below(20000) : random()));
            break;
        default:
            const std::string &other = seeds[below(seeds.size())];
            bytes = bytes.substr(0, at) + other.substr(below(other.size() + 1));
        }
    }
    return bytes;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    check_message({reinterpret_cast<const char *>(data), size});
    return 0;
}

#ifndef PERF_MESSAGES_LIBFUZZER
// perf_messages CORPUS [SEED]: tests the files good-* and bad-* of the corpus, then changed
// files
int main(int argc, char *argv[]) {
    constexpr unsigned CHANGED = 20000;
    std::mt19937_64 random(argc > 2 ? std::strtoull(argv[2], nullptr, 0) : 1);
    std::vector<std::string> seeds;
    std::map<std::string, unsigned> taken;
    std::vector<std::filesystem::path> files;
    for (const auto &entry : std::filesystem::directory_iterator(argv[1]))
        files.push_back(entry.path());
    std::ranges::sort(files); // each run has the same order
    for (const auto &path : files) {
        std::ifstream file(path, std::ios::binary);
        seeds.emplace_back(std::istreambuf_iterator<char>(file),
                           std::istreambuf_iterator<char>());
        const bool is_good = path.filename().string().starts_with("good-");
        if (check_message(seeds.back()) != is_good) {
            std::fprintf(stderr, "%s is %s\n", path.c_str(), is_good ? "refused" : "taken");
            return 1;
        }
        if (is_good)
            taken[decode(seeds.back())["word"]]++;
    }
    if (taken.size() != allowed.size()) {
        std::fprintf(stderr, "the corpus has %zu of %zu words\n", taken.size(), allowed.size());
        return 1;
    }
    unsigned accepted = 0;
    for (unsigned i = 0; i < CHANGED; i++)
        accepted += check_message(changed(seeds[random() % seeds.size()], seeds, random));
    std::printf("%zu files, %u changed: %u accepted, %u refused\n", seeds.size(), CHANGED,
                accepted, CHANGED - accepted);
    return accepted > CHANGED / 100 && accepted < CHANGED / 2 ? 0 : 1;
}
#endif
