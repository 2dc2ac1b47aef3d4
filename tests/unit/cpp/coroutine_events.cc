// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// coroutine_events.cc -- coroutines that await events of connections

#include <cstdlib>
#include <string>
#include <unistd.h>
#include <vector>

#include "coroutine.hh"

static coroutine take_events(side &s, std::vector<rpma_conn_event> &events) {
    rpma::event_source source(s.conn.get_event_fd(), [&] { return s.conn.next_event(); });
    s.others.push_back(reinterpret_cast<uintptr_t>(static_cast<rpma::source *>(&source)));
    for (;;)
        events.push_back((co_await source).value());
}

static rpma::source &source_of(const side &s) {
    return *reinterpret_cast<rpma::source *>(s.others.at(0));
}

// One readable edge of the descriptor may report several events. A change of the link address
// is not reported to the program.
TEST_THAT(every_event_reaches_the_coroutine) {
    side s;
    std::vector<rpma_conn_event> events;
    coroutine taking = take_events(s, events);
    source_of(s).ready(); // no event yet
    fake_cm_event(s.conn.get_event_fd(), RDMA_CM_EVENT_ADDR_CHANGE, nullptr, 0);
    fake_cm_event(s.conn.get_event_fd(), RDMA_CM_EVENT_DISCONNECTED, nullptr, 0);
    fake_cm_event(s.conn.get_event_fd(), RDMA_CM_EVENT_TIMEWAIT_EXIT, nullptr, 0);
    source_of(s).ready();
    assert_int_equal(events.size(), 2);
    assert_int_equal(events[0], RPMA_CONN_CLOSED);
    assert_false(taking.is_done());
    fake_fail("rdma_get_cm_event", 1, EIO);
    source_of(s).ready();
    assert_true(taking.is_done());
    assert_int_equal(taking.error(), RPMA_E_PROVIDER);
}

namespace {

// Events of a test: '!' is an exception of take(), '.' is dropped by take().
class letters {
  public:
    explicit letters(const std::string &sent) {
        if (pipe(fds_) != 0 || write(fds_[1], sent.data(), sent.size()) < 0)
            std::abort();
    }
    letters(const letters &) = delete;
    ~letters() {
        close(fds_[0]);
        close(fds_[1]);
    }
    int fd() const { return fds_[0]; }
    std::optional<char> take() {
        char letter;
        if (read(fds_[0], &letter, 1) != 1 || letter == '.')
            return std::nullopt;
        if (letter == '!')
            throw letter;
        return letter;
    }

  private:
    int fds_[2];
};

enum part { ONE, TWO, LETTERS, PARTS };
enum step { WAITING, IN_TAKE, IN_ONE, IN_TWO, AFTERWARDS, STEPS };

// Two coroutines wait for letters; then a third one takes those that are left.
class waiting_for_letters {
  public:
    waiting_for_letters(const std::vector<unsigned> &deleted, step at, char thrower)
        : deleted_(deleted), at_(at), thrower_(thrower) {}

    std::string run(const std::string &sent) {
        letters sender("");
        make_source(sender);
        waiting_[ONE].emplace(wait(*this, IN_ONE, '1'));
        waiting_[TWO].emplace(wait(*this, IN_TWO, '2'));
        delete_at(WAITING);
        letters arrived(sent);
        (void)dup2(arrived.fd(), sender.fd());
        (void)fcntl(sender.fd(), F_SETFL, O_NONBLOCK);
        if (source_) {
            coroutine::passes_on = true;
            try {
                source_->ready();
            } catch (char thrower) {
                trace_ = trace_ + " throws " + thrower;
            }
            coroutine::passes_on = false;
        }
        delete_at(AFTERWARDS);
        if (source_) {
            waiting_[ONE].reset(), waiting_[TWO].reset();
            trace_ += " left ";
            const coroutine taking = take_rest(*this);
        } else {
            char unread[8];
            const ssize_t count = read(arrived.fd(), unread, sizeof(unread));
            trace_ += " unread " + std::string(unread, count > 0 ? std::size_t(count) : 0);
        }
        return trace_;
    }
    std::string expected(std::string sent) {
        bool exists[PARTS] = {true, true, true}, took = false;
        std::string waiting = "12", trace;
        char thrown = 0;
        const auto kill = [&](step now) {
            for (const unsigned part : deleted_)
                if (deletes(part, now)) {
                    exists[part] = false;
                    if (part != LETTERS)
                        std::erase(waiting, part == ONE ? '1' : '2');
                }
        };
        kill(WAITING);
        const bool is_called = exists[LETTERS];
        char kept = 0;
        while (is_called && exists[LETTERS] && !waiting.empty()) {
            if (!std::exchange(took, true))
                kill(IN_TAKE);
            if (sent.empty())
                break;
            const char letter = sent[0];
            sent.erase(0, 1);
            if (letter == '.')
                continue;
            if (!exists[LETTERS] || waiting.empty()) {
                kept = letter;
                break;
            }
            const char coroutine = waiting[0];
            waiting.erase(0, 1);
            trace = trace + coroutine + letter;
            kill(coroutine == '1' ? IN_ONE : IN_TWO);
            if (coroutine == thrower_ && !thrown)
                thrown = thrower_;
        }
        if (thrown)
            trace = trace + " throws " + thrown;
        kill(AFTERWARDS);
        if (exists[LETTERS]) {
            std::erase(sent, '.');
            return trace + " left " + (kept ? std::string(1, kept) : "") + sent;
        }
        return trace + " unread " + sent;
    }

  private:
    using source = rpma::event_source<std::function<std::optional<char>()>>;

    void make_source(letters &sender) {
        source_.emplace(sender.fd(), [this, &sender, took = false]() mutable {
            if (!std::exchange(took, true))
                ; // co_await has called it first
            else if (!std::exchange(is_taking_, true))
                delete_at(IN_TAKE);
            return sender.take();
        });
    }
    static coroutine wait(waiting_for_letters &all, step now, char name) {
        char letter = '!';
        try {
            letter = (co_await *all.source_).value();
        } catch (char) {
        }
        all.trace_ = all.trace_ + name + letter;
        all.delete_at(now);
        if (all.thrower_ == name)
            throw name;
    }
    static coroutine take_rest(waiting_for_letters &all) {
        for (;;) {
            char letter = '!';
            try {
                letter = (co_await *all.source_).value();
            } catch (char) {
            }
            all.trace_ += letter;
        }
    }
    bool deletes(unsigned part, step now) const {
        return now == at_ && !(part == ONE && now == IN_ONE) && !(part == TWO && now == IN_TWO);
    }
    void delete_at(step now) {
        for (const unsigned part : deleted_)
            if (!deletes(part, now))
                continue;
            else if (part == LETTERS)
                source_.reset();
            else
                waiting_[part].reset();
    }

    const std::vector<unsigned> &deleted_;
    const step at_;
    const char thrower_;
    bool is_taking_ = false;
    std::string trace_;
    std::optional<source> source_;
    std::optional<coroutine> waiting_[2];
};

} // namespace

// Each event resumes one coroutine, in the order of waiting. An event that no coroutine has
// got is left, also if take() destroys the one that waits.
TEST_THAT(events_are_passed_on_in_every_order_of_deletion) {
    for (const char *const sent : {"", "a", "ab", "abc", ".a..b", "!b", "a!c", "!!"})
        for (const char thrower : {'-', '1', '2'}) // '-': none
            for (unsigned at = WAITING; at < STEPS; at++)
                each_order(PARTS, PARTS, [&](const std::vector<unsigned> &deleted) {
                    waiting_for_letters waiting(deleted, static_cast<step>(at), thrower);
                    const std::string expected = waiting.expected(sent);
                    const std::string found = waiting.run(sent);
                    if (found != expected)
                        fail_msg("'%s', %zu parts deleted at %u, '%c' throws: '%s', not '%s'",
                                 sent, deleted.size(), at, thrower, found.c_str(),
                                 expected.c_str());
                });
}

TEST_THAT(take_may_delete_its_source) {
    letters none("");
    std::optional<rpma::event_source<std::function<int()>>> source;
    source.emplace(none.fd(), [&source] {
        source.reset();
        return 1;
    });
    const auto wait = [](auto &from) -> coroutine { (void)co_await *from; };
    assert_true(wait(source).is_done());
}

// The descriptor is reported, but no event is pending.
TEST_THAT(closed_descriptor_has_no_event) {
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    close(fds[1]);
    rpma::event_source source(fds[0], [] { return false; });
    const auto wait = [](auto &from) -> coroutine { (void)co_await from; };
    const coroutine waiting = wait(source);
    source.ready();
    assert_false(waiting.is_done());
    close(fds[0]);
    int error = 0;
    try {
        const rpma::event_source refused(fds[0], [] { return true; });
    } catch (const std::system_error &failed) {
        error = failed.code().value();
    }
    assert_int_equal(error, EBADF);
}

// Of two coroutines that share an awaiter, the later one is resumed.
TEST_THAT(shared_awaiter_serves_one_coroutine) {
    letters none("");
    int events = 0;
    rpma::event_source source(none.fd(), [&] { return events; });
    auto awaiter = source.operator co_await();
    const auto await = [](auto &shared) -> coroutine { (void)co_await shared; };
    const coroutine earlier = await(awaiter), later = await(awaiter);
    events = 1;
    source.ready();
    source.ready();
    assert_true(later.is_done() && !earlier.is_done());
}

TEST_THAT(awaiter_can_be_awaited_again) {
    letters none("");
    rpma::event_source source(none.fd(), [] { return std::optional<int>(); });
    int events = 0;
    rpma::event_source counted(none.fd(), [&] { return events == 0 ? 0 : events--; });
    const auto twice = [](auto &from) -> coroutine {
        auto awaiter = from.operator co_await();
        (void)co_await awaiter;
        (void)co_await awaiter;
    };
    const coroutine never = twice(source), done = twice(counted);
    source.ready();
    for (const bool is_done : {false, true}) {
        events = 1;
        counted.ready();
        assert_true(done.is_done() == is_done);
    }
    assert_false(never.is_done());
}
