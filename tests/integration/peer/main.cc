// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// main.cc -- one side of an integration test: performs the commands on its standard input

#include "peer.hh"

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <unistd.h>

struct world world;

namespace {

std::map<std::string, Command> &known() {
    static std::map<std::string, Command> commands;
    return commands;
}

void perform(const Args &args) {
    const auto command = known().find(args.verb());
    if (command == known().end())
        bad_script("unknown command '" + args.verb() + "'");
    int code = 0;
    answer.str("");
    try {
        command->second(args);
    } catch (const Failed &failed) {
        code = failed.code;
        if (code == RPMA_E_PROVIDER)
            reply("errno", failed.error);
    }
    printf("%s%s%s\n", code == 0 ? "ok" : "err ", code == 0 ? "" : code_name(code),
           answer.str().c_str());
    fflush(stdout);
}

} // namespace

Commands::Commands(std::initializer_list<std::pair<const char *const, Command>> table) {
    for (const auto &[verb, command] : table)
        if (!known().emplace(verb, command).second)
            bad_script(std::string("two commands are called '") + verb + "'");
}

const char *code_name(int code) {
    switch (code) {
#define NAME(code) \
    case code:     \
        return #code
        NAME(RPMA_E_UNKNOWN);
        NAME(RPMA_E_NOSUPP);
        NAME(RPMA_E_PROVIDER);
        NAME(RPMA_E_NOMEM);
        NAME(RPMA_E_INVAL);
        NAME(RPMA_E_NO_COMPLETION);
        NAME(RPMA_E_NO_EVENT);
        NAME(RPMA_E_AGAIN);
        NAME(RPMA_E_SHARED_CHANNEL);
        NAME(RPMA_E_NOT_SHARED_CHNL);
        NAME(ERR_TIMEOUT);
        NAME(ERR_MISMATCH);
        NAME(ERR_SYSTEM);
        NAME(ERR_CLOSED);
#undef NAME
    default:
        return "an undocumented code";
    }
}

void must_system(bool worked, const char *call) {
    if (worked)
        return;
    reply("call", call);
    reply("errno", errno);
    throw Failed{ERR_SYSTEM};
}

void in_threads(size_t count, const std::function<void(size_t)> &work) {
    std::vector<std::optional<Failed>> failures(count);
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < count; i++)
        threads.emplace_back([&, i] {
            try {
                work(i);
            } catch (const Failed &failed) {
                failures[i] = failed;
            }
        });
    threads.clear();
    for (const std::optional<Failed> &failure : failures)
        if (failure)
            throw Failed(*failure);
}

int main() {
    char *line = nullptr;
    size_t capacity = 0;
    // The default log function is used: the original's library takes part in these tests, too.
    rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_INFO);
    rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_LEVEL_INFO);
    // "serve" polls for the next command, so none may be read ahead.
    setvbuf(stdin, nullptr, _IONBF, 0);
    printf("ready pid=%d\n", getpid());
    fflush(stdout);
    while (getline(&line, &capacity, stdin) > 0) {
        const Args args(line);
        if (args.verb() == "quit") {
            free(line);
            return 0;
        }
        fprintf(stderr, "---- %s\n", args.verb().c_str());
        perform(args);
    }
    free(line);
    return 3; // the script must say when it is over
}
