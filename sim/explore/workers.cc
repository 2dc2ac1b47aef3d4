// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// workers.cc -- runs schedules, several at a time in processes
//
// A process has a directory, a fabric and copies of the files of --pmem of its own. It receives
// a job and sends its result, each as a length and that many bytes.

#include "workers.hh"
#include "explore.hh"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

// Reads or writes the members of an object, in one order for both.
class Message {
  public:
    Message() = default;
    // For bytes() that the caller sets.
    explicit Message(size_t length) : bytes_(length, '\0'), reads_(true) {}
    std::string &bytes() { return bytes_; }
    template <class T>
    requires std::is_trivially_copyable_v<T>
    void add(T &value) { add(&value, sizeof(value)); }
    template <class T> void add(std::vector<T> &values) { add_sequence(values); }
    void add(std::string &text) { add_sequence(text); }

  private:
    template <class T> void add_sequence(T &values) {
        uint64_t count = values.size();
        add(count);
        values.resize(count);
        add(values.data(), count * sizeof(values[0]));
    }
    void add(void *data, size_t length) {
        if (!reads_)
            bytes_.append(static_cast<const char *>(data), length);
        else
            bytes_.copy(static_cast<char *>(data), length, at_);
        at_ += length;
    }
    std::string bytes_{};
    size_t at_ = 0;
    bool reads_ = false;
};

void add(Message &message, Job &job) {
    message.add(job.number);
    message.add(job.choices);
}

// Without the steps, which only a traced schedule has.
void add(Message &message, Result &result) {
    message.add(result.finding);
    message.add(result.choices);
    message.add(result.points);
    message.add(result.faults);
    message.add(result.reached);
    message.add(result.coverage);
}

bool send_bytes(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t length = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (length < 0 && errno != EINTR)
            return false;
        bytes.remove_prefix(static_cast<size_t>(std::max<ssize_t>(length, 0)));
    }
    return true;
}

bool receive_bytes(int fd, void *data, size_t size) {
    for (size_t done = 0; done < size;) {
        const ssize_t length = recv(fd, static_cast<char *>(data) + done, size - done, 0);
        if (length == 0 || (length < 0 && errno != EINTR))
            return false;
        done += static_cast<size_t>(std::max<ssize_t>(length, 0));
    }
    return true;
}

template <class T> bool send_object(int fd, T &object) {
    Message message;
    add(message, object);
    const uint64_t size = message.bytes().size();
    return send_bytes(fd, {reinterpret_cast<const char *>(&size), sizeof(size)}) &&
           send_bytes(fd, message.bytes());
}

template <class T> bool receive_object(int fd, T &object) {
    uint64_t size = 0;
    if (!receive_bytes(fd, &size, sizeof(size)))
        return false;
    Message message(size);
    if (!receive_bytes(fd, message.bytes().data(), size))
        return false;
    add(message, object);
    return true;
}

// What ended a process of a worker.
struct End {
    int status = 0;
    std::string line{};
};

void add(Message &message, End &end) {
    message.add(end.status);
    message.add(end.line);
}

// Runs jobs until the other process closes the socket. After each job it sends an End, then the
// result unless the worker has ended.
void work(int fd, const std::function<RunJob()> &prepare) {
    End end;
    try {
        const RunJob run = prepare();
        for (Job job; receive_object(fd, job);) {
            Result result = run(job);
            if (!send_object(fd, end) || !send_object(fd, result))
                return;
        }
        return;
    } catch (const Exit &exit) {
        end = {exit.status, exit.line};
    } catch (const std::exception &error) {
        end = {sim::EXIT_FAILED, error.what()};
    }
    send_object(fd, end);
}

} // namespace

Workers::Workers(unsigned count, Exploration &exploration,
                 const std::function<RunJob()> &prepare)
    : exploration_(exploration), workers_(count) {
    if (count == 1) {
        run_ = prepare();
        return;
    }
    for (Worker &worker : workers_) {
        int fds[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
            refuse("socketpair: %s", strerror(errno));
        worker.pid = fork_command(true, -1, -1, [&] {
            raise_file_limit();
            for (const Worker &other : workers_)
                if (other.fd >= 0)
                    close(other.fd);
            close(fds[0]);
            work(fds[1], prepare);
            _exit(EXIT_SUCCESS);
        });
        worker.fd = fds[0];
        close(fds[1]);
    }
}

Workers::~Workers() {
    for (const Worker &worker : workers_)
        if (worker.pid > 0) {
            kill(worker.pid, SIGTERM);
            close(worker.fd);
        }
    for (const Worker &worker : workers_)
        if (worker.pid > 0)
            waitpid(worker.pid, nullptr, 0);
}

bool Workers::has_idle() const {
    return std::ranges::any_of(workers_, [](const Worker &each) { return !each.job; });
}

bool Workers::runs_before(uint64_t number) const {
    return std::ranges::any_of(
        workers_, [&](const Worker &each) { return each.job && each.job->number < number; });
}

void Workers::start(Job job) {
    Worker &worker =
        *std::ranges::find_if(workers_, [](const Worker &each) { return !each.job; });
    worker.job = std::move(job);
    if (!run_)
        send_object(worker.fd, *worker.job); // wait() reports a worker that has ended
}

std::pair<uint64_t, Result> Workers::wait() {
    if (run_) {
        const Job job = *std::exchange(workers_.front().job, std::nullopt);
        return {job.number, run_(job)};
    }
    std::vector<pollfd> events = {{exploration_.signals.descriptor(), POLLIN, 0}};
    for (const Worker &worker : workers_)
        events.push_back({worker.fd, POLLIN, 0});
    while (true) {
        poll(events.data(), events.size(), -1);
        exploration_.check_signals();
        auto event = events.begin() + 1;
        for (Worker &worker : workers_) {
            if ((event++)->revents == 0)
                continue;
            End end = {sim::EXIT_FAILED, "a process of --jobs has ended"};
            std::pair<uint64_t, Result> done;
            if (!receive_object(worker.fd, end) || end.status != 0 ||
                !receive_object(worker.fd, done.second))
                throw Exit{end.status, end.line};
            done.first = std::exchange(worker.job, std::nullopt)->number;
            return done;
        }
    }
}
