// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// operation_questions.cc -- messages, inline data, atomic operations and flushes between two
// machines

#include "operation_questions.hh"

#include <algorithm>
#include <cstring>

static std::string text_of(const Json &taken, size_t size) {
    const auto bytes = from_hex(taken.at("text"));
    return {reinterpret_cast<const char *>(bytes.data()), std::min(size, bytes.size())};
}

Results messages(Session &session) {
    Results found;
    std::unique_ptr<Connection> made;
    bool has_two = true;
    try {
        made = session.open({{"sge", 2}}, {{"receives", 8}});
    } catch (const rpma::error &) { // receives of some devices have one SGE
        has_two = false;
        made = session.open({}, {{"receives", 8}});
    }
    found.emplace_back("connection with 2 SGEs", yes_or_no(has_two));
    Connection &c = *made;
    const auto received = [&] {
        return session.ask({{"do", "taken"}, {"number", c.number}, {"count", 1}});
    };
    std::memcpy(c.memory.at(0), "hello", 6);
    found.emplace_back("send", outcome(c.conn.send(c.memory.mr, 0, 6, ALWAYS), c));
    found.emplace_back("send, data", yes_or_no(text_of(received(), 6).starts_with("hello")));
    if (has_two) {
        const rpma_sge two[] = {{c.memory.mr, 0, 2}, {c.memory.mr, 4, 2}};
        session.poke(0, std::string(8, '.'));
        found.emplace_back("write of 2 SGEs",
                           outcome(c.conn.post({rpma::write{
                                       .remote = c.remote, .sges = two, .flags = ALWAYS}}),
                                   c));
        found.emplace_back("write of 2 SGEs, data",
                           yes_or_no(session.peek(0, 4) == std::string("heo\0", 4)));
    }
    found.emplace_back(
        "write with immediate data",
        outcome(c.conn.write_with_imm(c.remote, 0, c.memory.mr, 0, 8, ALWAYS, 7), c));
    (void)session.ask({{"do", "taken"}, {"number", c.number}, {"count", 1}, {"limit", 0.2}});
    if (found.back().second == "ok")
        found.emplace_back("send with immediate data",
                           outcome(c.conn.send_with_imm(c.memory.mr, 0, 8, ALWAYS, 7), c));
    session.close(c);
    return found;
}

// The buffer changes right after the post.
Results inline_data(Session &session) {
    Results found;
    const auto made = session.open({{"inline", 16}});
    Connection &c = *made;
    unsigned later = 0;
    std::string status = "ok";
    for (unsigned i = 0; i < 50 && status == "ok"; i++) {
        std::memset(c.memory.at(0), 'a', 16);
        const auto posted =
            c.conn.write(c.remote, 0, c.memory.mr, 0, 16, ALWAYS | RPMA_F_INLINE);
        std::memset(c.memory.at(0), 'b', 16);
        status = outcome(posted, c);
        if (i % 10 == 0)
            later += session.peek(0, 16).find('b') != std::string::npos ? 1 : 0;
    }
    found.emplace_back("status", status);
    found.emplace_back("the buffer is free after the post", yes_or_no(later == 0));
    session.close(c);
    return found;
}

Results atomics(Session &session) {
    Results found;
    constexpr unsigned TIMES = 500;
    const auto made = session.open();
    Connection &c = *made;
    const auto add = [&] {
        return c.conn.post({rpma::fetch_add{.remote = c.remote,
                                            .remote_offset = 128,
                                            .local = {c.memory.mr, 0, 8},
                                            .value = 1,
                                            .flags = ALWAYS}});
    };
    session.poke(128, std::string(8, '\0'));
    const std::string first = outcome(add(), c);
    found.emplace_back("fetch and add", first);
    if (first != "ok")
        return found;
    session.start({{"do", "add"}, {"offset", 128}, {"count", TIMES}});
    std::string status = first;
    for (unsigned i = 0; i < TIMES && status == "ok"; i++)
        status = outcome(add(), c);
    (void)session.finish();
    uint64_t sum = 0;
    std::memcpy(&sum, session.peek(128, 8).data(), 8);
    found.emplace_back("adds are exact beside the processor", yes_or_no(sum == 2 * TIMES + 1));
    const std::string swap =
        outcome(c.conn.post({rpma::compare_swap{.remote = c.remote,
                                                .remote_offset = 136,
                                                .local = {c.memory.mr, 0, 8},
                                                .compare = 1,
                                                .value = 9,
                                                .flags = ALWAYS}}),
                c);
    found.emplace_back("compare and swap of another value", swap);
    found.emplace_back("compare and swap of another value, unchanged",
                       yes_or_no(session.peek(136, 8)[0] == 0));
    session.close(c);
    return found;
}

// Writes words of equal bytes while the processor of the other side reads them.
Results torn(Session &session) {
    Results found;
    const auto made = session.open();
    Connection &c = *made;
    session.start({{"do", "watch"}, {"offset", 1024}, {"words", 64}, {"seconds", 0.5}});
    std::string status = "ok";
    const Clock clock;
    for (unsigned i = 1; clock.seconds() < 0.4 && status == "ok"; i++) {
        std::memset(c.memory.at(0), static_cast<int>(i % 250 + 1), 512);
        status = outcome(c.conn.write(c.remote, 1024, c.memory.mr, 0, 512, ALWAYS), c);
    }
    const Json watched = session.finish();
    found.emplace_back("status", status);
    found.emplace_back("aligned 8 bytes are whole", yes_or_no(watched.value("torn", 1) == 0));
    found.emplace_back("512 bytes are whole", yes_or_no(watched.value("mixed", 1) == 0));
    session.close(c);
    return found;
}

// A write after a read of the same memory, without a fence, may pass it.
Results unfenced(Session &session) {
    Results found;
    constexpr size_t SIZE = 32768;
    const auto made = session.open();
    Connection &c = *made;
    unsigned passed = 0, wrong = 0;
    for (unsigned i = 0; i < 60; i++) {
        std::memset(c.memory.at(0), 'o', 64);
        rpma::check(c.conn.write(c.remote, SIZE - 64, c.memory.mr, 0, 64, ALWAYS));
        wrong += c.take(1).size() == 1 ? 0 : 1;
        std::memset(c.memory.at(64), 'n', 64);
        rpma::check(c.conn.read(c.memory.mr, SIZE, c.remote, 0, SIZE, ALWAYS));
        rpma::check(c.conn.write(c.remote, SIZE - 64, c.memory.mr, 64, 64, ALWAYS));
        wrong += c.take(2).size() == 2 ? 0 : 1;
        passed += *c.memory.at(2 * SIZE - 1) == 'n' ? 1 : 0;
    }
    found.emplace_back("completions", yes_or_no(wrong == 0));
    found.emplace_back("a write passes a read", yes_or_no(passed > 0));
    session.close(c);
    return found;
}

Results flush(Session &session) {
    Results found;
    const auto made = session.open({{"sq", 32}});
    Connection &c = *made;
    const rpma_flush_mode mode = c.conn.get_flush_mode();
    found.emplace_back("method", mode == RPMA_FLUSH_MODE_NATIVE ? "native" : "emulated");
    unsigned stale = 0;
    std::string status = "ok";
    for (unsigned i = 0; i < 20 && status == "ok"; i++) {
        std::memset(c.memory.at(0), static_cast<int>('a' + i), 1024);
        rpma::check(c.conn.write(c.remote, 2048, c.memory.mr, 0, 1024, ON_ERROR));
        status =
            outcome(c.conn.flush(c.remote, 2048, 1024, RPMA_FLUSH_TYPE_VISIBILITY, ALWAYS), c);
        stale +=
            session.peek(2048, 1024) == std::string(1024, static_cast<char>('a' + i)) ? 0 : 1;
    }
    found.emplace_back("status", status);
    found.emplace_back("flushed data is visible", yes_or_no(stale == 0));
    const std::array<char, 8> word = {'w', 'o', 'r', 'd', '8', '8', '8', '8'};
    found.emplace_back("atomic write",
                       outcome(c.conn.atomic_write(c.remote, 8, word, ALWAYS), c));
    found.emplace_back("atomic write, data",
                       yes_or_no(session.peek(8, 8) == std::string(word.data(), 8)));
    session.close(c);
    return found;
}
