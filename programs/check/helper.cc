// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// helper.cc -- a process that forks others: it has not used a device, so that its children may

#include "helper.hh"

#include "../../sim/tests/conformance/cases.h"
#include "wire.hh"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr unsigned CASE_S = 9; // exchange.c waits longer, for slow machines of tests
constexpr size_t OUTPUT_MAX = 32768;

const cases &find_cases(const std::string &name) {
    return name == conformance_cases.name ? conformance_cases : exchange_cases;
}

struct Child {
    pid_t pid;
    int output;
};

// Forks a process that ends together with this one and writes its output into a pipe.
template <class Body> Child start(Body body) {
    int ends[2];
    if (pipe(ends) != 0)
        fail("pipe: {}", std::strerror(errno));
    const pid_t pid = fork();
    if (pid < 0)
        fail("fork: {}", std::strerror(errno));
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)dup2(ends[1], STDERR_FILENO);
        (void)close(ends[0]);
        (void)close(ends[1]);
        body();
        (void)std::fflush(stdout);
        _exit(EXIT_SUCCESS);
    }
    (void)close(ends[1]);
    return {pid, ends[0]};
}

std::string read_all(int fd, size_t most) {
    std::string text(most, '\0');
    size_t used = 0;
    for (ssize_t part; used < most; used += static_cast<size_t>(part))
        if ((part = read(fd, text.data() + used, most - used)) <= 0)
            break;
    text.resize(used);
    return text;
}

std::string reason_of(int status) {
    if (WIFSIGNALED(status))
        return WTERMSIG(status) == SIGALRM
                   ? fmt::format("no result within {} s", CASE_S)
                   : fmt::format("the process ended: {}", strsignal(WTERMSIG(status)));
    return WEXITSTATUS(status) == 0 ? "" : "a step failed";
}

Json run_in_child(const Json &what) {
    const cases &all = find_cases(what.at("case"));
    const size_t index = what.at("index");
    const std::string address = what.at("address");
    const Child child = start([&] {
        (void)alarm(CASE_S);
        if (all.prepare(address.c_str()))
            all.run(index);
    });
    const std::string output = read_all(child.output, OUTPUT_MAX);
    (void)close(child.output);
    int status = 0;
    (void)waitpid(child.pid, &status, 0);
    return {{"output", output}, {"end", reason_of(status)}};
}

// Never returns: it is killed.
[[noreturn]] void be_victim(const std::string &address) {
    rpma::peer peer(rpma::get_ibv_context(address, RPMA_UTIL_IBV_CONTEXT_LOCAL));
    rpma::ep ep(peer, address, "0");
    Memory memory(peer);
    const sockaddr_storage bound = ep.get_addr();
    (void)std::printf("%s\n", port_of(bound).c_str());
    (void)std::fflush(stdout);
    std::optional<rpma::conn_req> incoming;
    while (!incoming)
        incoming = ep.next_conn_req();
    const rpma::conn conn = std::move(*incoming).connect(rpma::packed({memory.mr.get()}));
    for (;;)
        (void)pause();
}

class Loop {
  public:
    explicit Loop(int socket) : socket_(socket) {}
    void run() {
        std::string request(OUTPUT_MAX, '\0');
        for (ssize_t size; (size = recv(socket_, request.data(), request.size(), 0)) > 0;) {
            const Json what = Json::parse(request.substr(0, static_cast<size_t>(size)));
            // A driver may print bytes that are no UTF-8.
            const std::string reply =
                respond(what).dump(-1, ' ', true, Json::error_handler_t::replace);
            (void)send(socket_, reply.data(), reply.size(), MSG_NOSIGNAL);
        }
        end_victim();
    }

  private:
    Json respond(const Json &what) {
        if (what.contains("case"))
            return run_in_child(what);
        end_victim();
        if (what.contains("kill"))
            return Json::object();
        const std::string address = what.at("victim");
        victim_ = start([&] { be_victim(address); });
        std::string port = read_all(victim_.output, 6);
        return {{"port", port.substr(0, port.find('\n'))}};
    }

    void end_victim() {
        if (victim_.pid <= 0)
            return;
        (void)kill(victim_.pid, SIGKILL);
        (void)waitpid(victim_.pid, nullptr, 0);
        (void)close(victim_.output);
        victim_.pid = 0;
    }

    const int socket_;
    Child victim_{};
};

} // namespace

size_t case_count(const std::string &name) {
    return find_cases(name).count;
}

Helper::Helper() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        fail("socketpair: {}", std::strerror(errno));
    (void)std::fflush(nullptr);
    child_ = fork();
    if (child_ < 0)
        fail("fork: {}", std::strerror(errno));
    if (child_ == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)close(ends[0]);
        try {
            Loop(ends[1]).run();
        } catch (const std::exception &) {
            _exit(EXIT_FAILURE);
        }
        _exit(EXIT_SUCCESS);
    }
    (void)close(ends[1]);
    socket_ = ends[0];
}

Helper::~Helper() {
    (void)close(socket_);
    (void)kill(child_, SIGKILL); // PR_SET_PDEATHSIG ends its children
    (void)waitpid(child_, nullptr, 0);
}

Json Helper::request(const Json &what) {
    const std::string text = what.dump();
    std::string reply(2 * OUTPUT_MAX * 6, '\0'); // each byte may be escaped
    if (send(socket_, text.data(), text.size(), MSG_NOSIGNAL) < 0)
        fail("the process that runs the cases has ended");
    ssize_t size;
    while ((size = recv(socket_, reply.data(), reply.size(), 0)) < 0 && errno == EINTR)
        check_stopping();
    if (size <= 0)
        fail("the process that runs the cases has ended");
    return Json::parse(reply.substr(0, static_cast<size_t>(size)));
}

Json Helper::run_case(const std::string &name, size_t index, const std::string &address) {
    return request({{"case", name}, {"index", index}, {"address", address}});
}

std::string Helper::start_victim(const std::string &address) {
    const std::string port = request({{"victim", address}}).at("port");
    if (port.empty())
        fail("a second process cannot listen on {}", escaped(address));
    return port;
}

void Helper::kill_victim() {
    (void)request({{"kill", true}});
}
