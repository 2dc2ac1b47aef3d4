// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// output.cc -- the output of programs with the host before each line, and that of rdma-sim

#include "output.hh"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>

#include "sim.hh"

namespace {

constexpr size_t PART = 65536;           // bytes of a pipe in one turn of the event loop
constexpr size_t MAX_LINE = 65536;       // a longer line is printed in parts
constexpr size_t MAX_PENDING = 4 * PART; // then a program waits for the reader of its output

bool is_writable(int fd) {
    pollfd event = {fd, POLLOUT, 0};
    return poll(&event, 1, 0) == 1;
}

} // namespace

void refuse(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *line = nullptr;
    const int length = vasprintf(&line, format, arguments);
    va_end(arguments);
    Exit refusal = {EXIT_USAGE, length < 0 ? format : line};
    free(line);
    throw refusal;
}

// Other bytes than printable ones would change the terminal, or end the line.
std::string printable(std::string_view text) {
    std::string result;
    for (const char byte : text) {
        char code[8] = {byte};
        const auto value = static_cast<unsigned char>(byte);
        if ((value < ' ' && byte != '\t') || value == 0x7f)
            snprintf(code, sizeof(code), "\\x%02x", value);
        result += code;
    }
    return result;
}

void fail_output(const char *stream, int error) {
    if (error == EPIPE)
        throw Exit{128 + SIGPIPE, ""};
    throw Exit{EXIT_FAILURE, std::string(stream) + ": " + strerror(error)};
}

void print(std::string_view text) {
    if (fwrite(text.data(), 1, text.size(), stdout) != text.size())
        fail_output("standard output", errno);
}

void flush_output() {
    if (fflush(stdout) != 0)
        fail_output("standard output", errno);
}

PrefixedOutput::~PrefixedOutput() {
    for (const Pipe &pipe : pipes_)
        close(pipe.fd);
}

int PrefixedOutput::add(unsigned host, int to) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        refuse("pipe: %s", strerror(errno));
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    pipes_.push_back({ends[0], ++count_, host, &sinks_[to - STDOUT_FILENO]});
    return ends[1];
}

void PrefixedOutput::add_events(std::vector<pollfd> &events) const {
    for (const Pipe &pipe : pipes_)
        if (pipe.sink->pending.size() < MAX_PENDING)
            events.push_back({pipe.fd, POLLIN, 0});
    for (const Sink &sink : sinks_)
        if (!sink.pending.empty())
            events.push_back({sink.fd, POLLOUT, 0});
}

void PrefixedOutput::serve() {
    std::erase_if(pipes_, [&](Pipe &pipe) {
        if (pipe.sink->pending.size() >= MAX_PENDING || read_part(pipe))
            return false;
        end_line(pipe);
        close(pipe.fd);
        return true;
    });
    for (Sink &sink : sinks_)
        write_pending(sink);
}

void PrefixedOutput::close_all() {
    for (Pipe &pipe : pipes_) {
        pollfd event = {pipe.fd, POLLIN, 0};
        while (poll(&event, 1, 0) == 1 && read_part(pipe))
            ;
        end_line(pipe);
        close(pipe.fd);
    }
    pipes_.clear();
}

bool PrefixedOutput::read_part(Pipe &pipe) {
    static char part[PART];
    const ssize_t length = read(pipe.fd, part, sizeof(part));
    if (length > 0)
        take(pipe, {part, static_cast<size_t>(length)});
    return length > 0 || (length < 0 && (errno == EAGAIN || errno == EINTR));
}

void PrefixedOutput::take(Pipe &pipe, std::string_view part) {
    for (size_t end; (end = part.find('\n')) != part.npos; part.remove_prefix(end + 1)) {
        print(pipe, pipe.line, false);
        pipe.line.clear();
        print(pipe, part.substr(0, end), true);
    }
    pipe.line += part;
    if (pipe.line.size() < MAX_LINE)
        return;
    print(pipe, pipe.line, false);
    pipe.line.clear();
}

// Ends the unfinished line of another program, because lines are not mixed.
void PrefixedOutput::print(const Pipe &pipe, std::string_view text, bool ends_line) {
    Sink &sink = *pipe.sink;
    if (text.empty() && !ends_line)
        return;
    if (sink.unfinished != pipe.number)
        sink.pending +=
            (sink.unfinished == 0 ? "host" : "\nhost") + std::to_string(pipe.host) + ": ";
    sink.pending += text;
    sink.unfinished = ends_line ? 0 : pipe.number;
    if (ends_line)
        sink.pending += '\n';
}

void PrefixedOutput::end_line(Pipe &pipe) {
    if (!pipe.line.empty() || pipe.sink->unfinished == pipe.number)
        print(pipe, pipe.line, true);
}

// A pipe that is writable accepts PIPE_BUF bytes at once. Both outputs may be the same file, so
// that a part ends with a line if it can.
void PrefixedOutput::write_pending(Sink &sink) {
    size_t written = 0;
    while (written < std::min(sink.pending.size(), PART) && is_writable(sink.fd)) {
        const std::string_view part = std::string_view(sink.pending).substr(written, PIPE_BUF);
        const size_t end = part.rfind('\n');
        const ssize_t length =
            write(sink.fd, part.data(), end == part.npos ? part.size() : end + 1);
        if (length < 0 && errno != EAGAIN && errno != EINTR) {
            const int error = errno;
            sink.pending.clear();
            fail_output(sink.name, error);
        }
        if (length < 0)
            break;
        written += static_cast<size_t>(length);
    }
    sink.pending.erase(0, written);
}
