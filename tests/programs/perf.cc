// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// perf.cc -- tests the parts of rpma-perf that need no RDMA: histogram, pattern, plan,
// options and messages

#include "arguments.hh"
#include "failure.hh"
#include "histogram.hh"
#include "message.hh"
#include "pattern.hh"

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <vector>

extern "C" {
#include <cmocka.h>
}

static constexpr size_t VALUES =
    20011; // not a multiple of 100, so that percentiles are not whole numbers

static uint64_t random_state = 42;

static uint64_t next_random(void) {
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return random_state >> 11;
}

// Adds values of all magnitudes up to 2^bits to the histogram, and returns them sorted.
static std::vector<uint64_t> make_values(Histogram &histogram, unsigned bits) {
    std::vector<uint64_t> values(VALUES);
    for (uint64_t &value : values) {
        value = next_random() & ((UINT64_C(1) << (1 + next_random() % bits)) - 1);
        histogram.add(value);
    }
    std::ranges::sort(values);
    return values;
}

// By definition: the smallest value that is at least as large as this part of all values.
static uint64_t exact(const std::vector<uint64_t> &values, double part) {
    size_t rank = 0;
    while (static_cast<double>(rank + 1) < part * static_cast<double>(VALUES))
        rank++;
    return values[rank];
}

static void expect_near(uint64_t found, uint64_t wanted) {
    assert_true(found >= wanted);
    assert_true(found <= wanted + wanted / 256);
}

static void percentiles_are_within_the_bucket_error(void **) {
    for (unsigned bits = 4; bits <= 43; bits += 3) {
        Histogram histogram;
        const std::vector<uint64_t> values = make_values(histogram, bits);
        for (const double part : {0.0001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1.0})
            expect_near(histogram.at(part), exact(values, part));
        assert_int_equal(histogram.min, values.front());
        assert_int_equal(histogram.max, values.back());
        assert_int_equal(histogram.at(1), values.back());
    }
}

static void small_values_are_exact(void **) {
    for (uint64_t value = 0; value < 512; value++) {
        Histogram histogram;
        histogram.add(value);
        histogram.add(100000);
        assert_int_equal(histogram.at(0.5), value);
    }
}

// The percentiles exclude the largest 100, 10, 9, 2, 1 and 0 of 100,000 values.
static void percentile_beyond_the_third_nine_is_exact(void **) {
    const struct {
        double part;
        uint64_t value;
    } cases[] = {{0.999, 10},   {0.9999, 10},  {0.99991, 20},
                 {0.99998, 20}, {0.99999, 30}, {1, 40}};
    Histogram histogram;
    for (unsigned i = 0; i < 99990; i++)
        histogram.add(10);
    for (const auto &[count, value] : {std::pair(8, 20), {1, 30}, {1, 40}})
        for (int i = 0; i < count; i++)
            histogram.add(static_cast<uint64_t>(value));
    for (const auto &[part, value] : cases)
        assert_int_equal(histogram.at(part), value);
}

// Each value is found in its own bucket, neither below it nor too far above.
static void bucket_edges_are_within_the_error(void **) {
    for (unsigned bit = 0; bit < Histogram::MAX_BITS; bit++)
        for (int step = -1; step <= 1; step++) {
            const uint64_t value = (UINT64_C(1) << bit) + static_cast<uint64_t>(step);
            if (value >= UINT64_C(1) << Histogram::MAX_BITS)
                continue;
            Histogram histogram;
            histogram.add(value);
            histogram.add(UINT64_MAX); // so that the maximum does not bound the bucket
            expect_near(histogram.at(0.5), value);
            assert_true(histogram.max == UINT64_MAX);
        }
}

static void merged_histogram_equals_one_of_all_values(void **) {
    std::array<Histogram, 3> all;
    for (size_t i = 0; i < VALUES; i++) {
        const uint64_t value = next_random() % 1000000;
        all[0].add(value);
        all[1 + i % 2].add(value);
    }
    all[1].merge(all[2]);
    assert_true(all[0] == all[1]);
    assert_true(all[0].mean() > 490000 && all[0].mean() < 510000);
}

static void empty_histogram_is_zero(void **) {
    const Histogram histogram;
    assert_int_equal(histogram.at(0.5), 0);
    assert_int_equal(histogram.at(1), 0);
    assert_true(histogram.mean() == 0);
}

// ---- pattern -------------------------------------------------------------------------------

static constexpr size_t PATTERN_SIZE = 131;
using Pattern = std::array<char, PATTERN_SIZE>;

static void pattern_check_detects_each_bit(void **) {
    Pattern data;
    pattern_fill(data, 3, 70);
    assert_int_equal(pattern_check(data, 3, 70), data.size());
    for (size_t i = 0; i < data.size(); i++)
        for (unsigned bit = 0; bit < 8; bit++) {
            data[i] = static_cast<char>(data[i] ^ (1 << bit));
            assert_int_equal(pattern_check(data, 3, 70), i);
            data[i] = static_cast<char>(data[i] ^ (1 << bit));
        }
}

static void each_operation_has_its_own_pattern(void **) {
    Pattern data;
    pattern_fill(data, 3, 70);
    assert_true(pattern_check(data, 3, 71) < 4);
    assert_true(pattern_check(data, 4, 70) < 4);
    std::shift_left(data.begin(), data.end(), 8); // the same words at other offsets
    assert_true(pattern_check(data, 3, 70) < 4);
}

static void pattern_keeps_its_size(void **) {
    for (size_t size = 0; size < 20; size++) {
        Pattern data{};
        pattern_fill(std::span(data).first(size), 0, 0);
        assert_int_equal(pattern_check(std::span(data).first(size), 0, 0), size);
        assert_true(std::all_of(data.begin() + static_cast<long>(size), data.end(),
                                [](char byte) { return byte == 0; }));
    }
}

// ---- plan ----------------------------------------------------------------------------------

// Both sides derive places of 4096 bytes; one signal per batch of echoed messages, or per 64 of
// them; without echoes, receives for twice the depth, but at least 32.
static void needs_of_a_plan_are_those_of_the_table(void **) {
    const struct {
        const char *operation;
        uint64_t size, depth, batch, connections;
        uint64_t stride, receives, places, memory, signal_every, sends, region = 0;
    } cases[] = {
        {"write", 1, 1, 1, 1, 4096, 32, 1, 4096, 1, 4},
        {"write", 4096, 4, 2, 3, 4096, 32, 4, 49152, 1, 16},
        {"write", 4097, 4, 1, 2, 8192, 32, 16, 262144, 1, 16, 131072},
        {"write", 64, 4, 1, 1, 4096, 32, 1, 4096, 1, 16, 4095},
        {"write", 64, 4, 1, 1, 4096, 32, 2, 8192, 1, 16, 12287},
        {"send", 64, 16, 1, 1, 4096, 32, 32, 131072, 1, 64},
        {"send", 64, 17, 1, 1, 4096, 34, 34, 139264, 1, 68},
        {"ping-pong", 64, 16, 1, 2, 4096, 16, 32, 262144, 64, 256},
        {"ping-pong", 64, 100, 1, 1, 4096, 100, 200, 819200, 100, 400},
        {"ping-pong", 64, 16, 2, 1, 4096, 16, 32, 131072, 2, 64},
    };
    for (const auto &c : cases) {
        const Plan plan{.operation = find_operation(c.operation),
                        .size = c.size,
                        .depth = c.depth,
                        .batch = c.batch,
                        .connections = c.connections,
                        .region = c.region};
        assert_int_equal(plan.stride(), c.stride);
        assert_int_equal(plan.receives(), c.receives);
        assert_int_equal(plan.target_places(), c.places);
        assert_int_equal(plan.target_size(), c.memory);
        assert_int_equal(plan.signal_every(), c.signal_every);
        assert_int_equal(plan.sends(), c.sends);
    }
}

// Each invalid plan, and the nearest valid one.
static void plan_bounds_are_checked(void **) {
    const uint64_t atomic = find_operation("atomic-write"), connect = find_operation("connect");
    const struct {
        Plan wrong, right;
        const char *text;
    } cases[] = {
        {{.operation = atomic, .size = 9}, {.operation = atomic, .size = 8}, "has 8 bytes"},
        {{.operation = atomic, .size = 8, .elements = 2},
         {.operation = atomic, .size = 8, .elements = 1},
         "has one SGE"},
        {{.operation = atomic, .size = 8, .depth = 2, .batch = 2, .prepared = 1, .verify = 1},
         {.operation = atomic, .size = 8, .depth = 2, .batch = 2, .prepared = 1},
         "cannot be verified"},
        {{.size = 0, .region = 4096}, {.size = 1, .region = 4096}, "a byte for each SGE"},
        {{.size = 3, .elements = 4}, {.size = 4, .elements = 4}, "a byte for each SGE"},
        {{.operation = connect, .size = 1}, {.operation = connect, .size = 0}, "without data"},
        {{.depth = 5, .batch = 2}, {.depth = 4, .batch = 2}, "a multiple of the batch"},
        {{.prepared = 1}, {.depth = 2, .batch = 2, .prepared = 1}, "needs a batch of 2"},
        {{.connections = 2, .threads = 3},
         {.connections = 2, .threads = 2},
         "each thread needs"},
        {{.size = (1 << 30) - 4095, .depth = 1025},
         {.size = 1 << 30, .depth = 1024},
         "a tebibyte"},
        {{.size = 1, .connections = 1024, .region = UINT64_C(1) << 31}, // twice a tebibyte
         {.size = 1, .connections = 1024, .region = UINT64_C(1) << 30},
         "a tebibyte"},
    };
    for (const auto &[wrong, right, text] : cases) {
        if (wrong.conflict().find(text) == std::string_view::npos)
            fail_msg("\"%s\" instead of \"%s\"", std::string(wrong.conflict()).c_str(), text);
        assert_string_equal(std::string(right.conflict()).c_str(), "");
    }
    for (uint64_t i = 0; i < OPERATION_COUNT; i++)
        assert_int_equal(find_operation(operations[i].name), i);
    assert_int_equal(find_operation("shout"), OPERATION_COUNT);
}

// ---- options -------------------------------------------------------------------------------

// The settings that differ from the default, operations, sizes, and limits in nanoseconds.
static std::string options_of(std::vector<const char *> words) {
    words.insert(words.begin(), "rpma-perf");
    const Options o =
        read_options(static_cast<int>(words.size()), const_cast<char **>(words.data()));
    std::string text = o.address + ":" + o.port;
    for (const Setting &setting : settings)
        if (o.plan.*setting.field != Plan().*setting.field)
            text += fmt::format(" {}={}", setting.name, o.plan.*setting.field);
    for (const uint64_t operation : o.operations)
        text += fmt::format(" {}", operations[operation].name);
    for (const uint64_t size : o.sizes)
        text += fmt::format(" {}", size);
    text += fmt::format(" w{} n{} D{} i{}", o.limits.warmup, o.limits.count,
                        o.limits.duration_ns, o.limits.interval_ns);
    const std::pair<bool, const char *> flags[] = {{o.is_server, " server"},
                                                   {o.direct_write, " direct-write"},
                                                   {o.once, " once"},
                                                   {o.json, " json"},
                                                   {o.shows_intervals, " intervals"},
                                                   {o.reconnect, " reconnect"},
                                                   {o.includes_all, " takes all"}};
    for (const auto &[is_there, name] : flags)
        text += is_there ? name : "";
    for (const std::string &path : {o.memory, o.plot})
        text += path.empty() ? "" : " " + path;
    return text + (o.limit == UINT64_C(1) << 30 ? "" : fmt::format(" limit={}", o.limit));
}

static void options_set_the_plan(void **) {
    const struct {
        std::vector<const char *> words;
        const char *options;
    } cases[] = {
        {{"host"}, "host:7204 write 64 w100 n0 D3000000000 i0"},
        {{"-o", "read,send", "-b", "64,4K,3m,1G", "-d", "8", "-p", "1", "host"},
         "host:1 depth=8 read send 64 4096 3145728 1073741824 w100 n0 D3000000000 i0"},
        {{"-b", "1:9", "--batch", "4", "-t", "3", "-w", "0", "-n", "7", "host"},
         "host:7204 depth=4 batch=4 connections=3 threads=3 write 1 2 4 8 w0 n7 D3000000000 "
         "i0"},
        {{"-o", "all,write", "-b", "1", "-b", "8", "-c", "2", "-D", "0.5", "--interval", "0.25",
          "--reconnect", "-j", "host"},
         "host:7204 connections=2 write read flush-visibility flush-persistent atomic-write "
         "send "
         "ping-pong ping-pong-rcq fetch-add compare-swap write 8 w100 n0 D500000000 i250000000 "
         "json "
         "intervals reconnect takes all"},
        {{"-e", "2", "-i", "16", "--poll", "--region", "1M", "--random", "--reads", "5",
          "--both", "--rate", "9", "host"},
         "host:7204 elements=2 inline=16 poll=1 region=1048576 random=1 reads=5 both=1 rate=9 "
         "write "
         "64 w100 n0 D3000000000 i0"},
        {{"--batch", "2", "-d", "4", "--prepared", "--verify", "host"},
         "host:7204 depth=4 batch=2 prepared=1 verify=1 write 64 w100 n0 D3000000000 i0"},
        {{"-p", "65535", "-n", "1024G", "-w", "1024G", "--plot", "f", "--interval", "86400",
          "host"},
         "host:65535 write 64 w1099511627776 n1099511627776 D3000000000 i86400000000000 "
         "intervals f"},
        // A plot has 200 intervals of at least 1 ms, or intervals of 10 ms without a duration.
        {{"--plot", "f", "-D", "2", "host"},
         "host:7204 write 64 w100 n0 D2000000000 i10000000 f"},
        {{"--plot", "f", "-D", "0.001", "host"},
         "host:7204 write 64 w100 n0 D1000000 i1000000 f"},
        {{"--plot", "f", "-n", "5", "host"},
         "host:7204 write 64 w100 n5 D3000000000 i10000000 f"},
        {{"-s", "-1", "-m", "p", "--direct-write", "host"},
         "host:7204 write 64 w100 n0 D3000000000 i0 server direct-write once p"},
        {{"-s", "--limit", "4096", "host"},
         "host:7204 write 64 w100 n0 D3000000000 i0 server limit=4096"},
        {{"-s", "--limit", "1024G", "host"},
         "host:7204 write 64 w100 n0 D3000000000 i0 server limit=1099511627776"},
    };
    for (const auto &[words, options] : cases)
        assert_string_equal(options_of(words).c_str(), options);
    std::string most = "8";
    for (unsigned i = 1; i < 64; i++)
        most += ",8";
    (void)options_of({"-b", most.c_str(), "host"});
    // One plan per size, but only one if the operation has a fixed size.
    const Options three{.sizes = {1, 2, 3}};
    assert_int_equal(three.plans(0).size(), 3);
    assert_int_equal(three.plans(1)[2].size, 3);
    assert_int_equal(three.plans(1)[2].operation, 1);
    assert_int_equal(three.plans(find_operation("fetch-add")).size(), 1);
    assert_int_equal(three.plans(find_operation("fetch-add"))[0].size, 8);
    assert_int_equal(three.plans(find_operation("connect")).size(), 1);
    assert_int_equal(three.plans(find_operation("connect"))[0].size, 0);
}

// ---- messages ------------------------------------------------------------------------------

// The reason for rejecting the bytes, or "".
static std::string refusal(const std::string &bytes) {
    try {
        (void)decode(bytes);
        return "";
    } catch (const Failure &why) {
        return why.what();
    }
}

static void expect_refused(const std::string &bytes, const std::string &part) {
    const std::string why = refusal(bytes);
    if (why.find(part) == std::string::npos || why.empty())
        fail_msg("%s: \"%s\" instead of \"%s\"", bytes.c_str(), why.c_str(), part.c_str());
}

static void message_survives_encoding(void **) {
    const std::array sent = {std::byte{0}, std::byte{0x7f}, std::byte{0x80}, std::byte{0xff}};
    const Json ready =
        decode(message("ready", {{"session", UINT64_MAX}, {"target", to_hex(sent)}}).dump());
    assert_true(ready["word"] == "ready");
    assert_true(ready["session"] == UINT64_MAX);
    assert_string_equal(ready["target"].get_ref<const std::string &>().c_str(), "007f80ff");
    assert_true(std::ranges::equal(from_hex(ready["target"]), sent));
    assert_string_equal(decode(message("refused", {{"reason", "a = \"b\""}}).dump())["reason"]
                            .get_ref<const std::string &>()
                            .c_str(),
                        "a = \"b\"");
}

static void plan_survives_encoding(void **) {
    const Plan plan{.operation = 3,
                    .size = 4096,
                    .depth = 8,
                    .batch = 4,
                    .connections = 3,
                    .threads = 2,
                    .region = 65536};
    const Plan found = parse_plan(decode(plan_message(plan).dump()));
    for (const Setting &setting : settings)
        assert_int_equal(found.*setting.field, plan.*setting.field);
    assert_true(decode(plan_message(plan, "00ff").dump())["target"] == "00ff");
    Json odd = plan_message(plan);
    odd["depth"] = 6;
    try {
        (void)parse_plan(decode(odd.dump()));
        fail_msg("settings that conflict are taken");
    } catch (const Failure &why) {
        assert_string_equal(why.what(), "the depth must be a multiple of the batch");
    }
}

static void invalid_message_is_rejected(void **) {
    for (const char *bytes : {"", "plan", "{", "[]", "7", "null", "{}", "{\"word\":1}",
                              "{\"word\":\"ok\"}x", "{\"word\":\"o\377k\"}"})
        expect_refused(bytes, "an invalid message");
    expect_refused("{\"word\":\"shout\"}", "an unknown message");
    expect_refused("{\"word\":\"ok\",\"more\":1}", "unknown members");
    const std::string ok = "{\"word\":\"ok\"}";
    assert_string_equal(refusal(ok + std::string(MESSAGE_SIZE - ok.size(), ' ')).c_str(), "");
    expect_refused(ok + std::string(MESSAGE_SIZE - ok.size() + 1, ' '), "longer than 16384");
    expect_refused(std::string(MESSAGE_SIZE, '['), "an invalid message");
}

static void numbers_out_of_range_are_rejected(void **) {
    for (const char *value : {"-1", "0", "4097", "1.5", "1e3", "\"1\"", "true", "null", "[1]",
                              "18446744073709551616"}) {
        std::string text = plan_message({}).dump();
        text.replace(text.find("\"depth\":1"), 9, std::string("\"depth\":") + value);
        expect_refused(text,
                       "\"depth\" of the message \"plan\" is missing or out of its range");
    }
    std::string text = plan_message({}).dump();
    expect_refused(text.replace(text.find("\"depth\""), 7, "\"death\""), "\"depth\"");
}

static void members_of_another_type_are_rejected(void **) {
    const std::string many(2 * UINT8_MAX + 2, '0');
    for (const char *target : {"\"\"", "\"0\"", "\"0g\"", "\"0A\"", "7", "[]", "{\"00\":1}"})
        expect_refused(std::string("{\"word\":\"ready\",\"session\":1,\"target\":") + target +
                           "}",
                       "\"target\"");
    expect_refused("{\"word\":\"ready\",\"session\":1,\"target\":\"" + many + "\"}",
                   "\"target\"");
    for (const char *done :
         {"[]", "7", "[-1]", "[1,\"2\"]", "[[1]]", "{\"a\":1}", "[100000000000000]"})
        expect_refused(std::string("{\"word\":\"stop\",\"done\":") + done + "}", "\"done\"");
    expect_refused(
        message("stop", {{"done", std::vector<uint64_t>(CONNECTIONS_MAX + 1)}}).dump(),
        "\"done\"");
    const std::vector<uint64_t> most(CONNECTIONS_MAX, COUNT_MAX);
    const std::string stop = message("stop", {{"done", most}}).dump();
    assert_in_range(stop.size(), MESSAGE_SIZE - 1024, MESSAGE_SIZE);
    assert_string_equal(refusal(stop).c_str(), "");
    for (const char *reason : {"7", "\"\\n\"", "\"\\u00e4\""})
        expect_refused(std::string("{\"word\":\"refused\",\"reason\":") + reason + "}",
                       "\"reason\"");
}

static void reason_is_truncated_to_the_message_size(void **) {
    const std::string reason = "line\n\377" + std::string(1000, 'x');
    const Json refused = decode(message("refused", {{"reason", printable(reason)}}).dump());
    const auto &found = refused["reason"].get_ref<const std::string &>();
    assert_int_equal(found.size(), 512);
    assert_int_equal(found.compare(0, 7, "line??x"), 0);
}

int main() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentiles_are_within_the_bucket_error),
        cmocka_unit_test(small_values_are_exact),
        cmocka_unit_test(percentile_beyond_the_third_nine_is_exact),
        cmocka_unit_test(bucket_edges_are_within_the_error),
        cmocka_unit_test(merged_histogram_equals_one_of_all_values),
        cmocka_unit_test(empty_histogram_is_zero),
        cmocka_unit_test(pattern_check_detects_each_bit),
        cmocka_unit_test(each_operation_has_its_own_pattern),
        cmocka_unit_test(pattern_keeps_its_size),
        cmocka_unit_test(needs_of_a_plan_are_those_of_the_table),
        cmocka_unit_test(plan_bounds_are_checked),
        cmocka_unit_test(options_set_the_plan),
        cmocka_unit_test(message_survives_encoding),
        cmocka_unit_test(plan_survives_encoding),
        cmocka_unit_test(invalid_message_is_rejected),
        cmocka_unit_test(numbers_out_of_range_are_rejected),
        cmocka_unit_test(members_of_another_type_are_rejected),
        cmocka_unit_test(reason_is_truncated_to_the_message_size),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
