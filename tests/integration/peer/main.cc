// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// main.cc -- one side of an integration test: executes the commands on its standard input

#include "error_codes.h"
#include "peer.hh"

#include <cstdio>
#include <iostream>
#include <unistd.h>

struct fixture fixture;

namespace {

std::map<std::string, Command> &commands_by_name() {
    static std::map<std::string, Command> commands;
    return commands;
}

void execute(const Args &args) {
    const auto command = commands_by_name().find(args.verb());
    if (command == commands_by_name().end())
        args.refuse("there is no such command");
    int code = 0;
    answer.str("");
    try {
        command->second(args);
    } catch (const Failed &failed) {
        code = failed.code;
        if (code == RPMA_E_PROVIDER)
            reply("errno", failed.error);
    }
    std::cout << (code == 0 ? "ok" : std::string("err ") + code_name(code)) << answer.str()
              << std::endl;
}

} // namespace

Commands::Commands(std::initializer_list<std::pair<const char *const, Command>> table) {
    for (const auto &[verb, command] : table)
        if (!commands_by_name().emplace(verb, command).second)
            Args(verb).refuse("two commands have this name");
}

const char *code_name(int code) {
#define NAME(code) \
    { code, #code }
#define NAME_OF(code, text, is_failure) {code, #code},
    static const std::map<int, const char *> names = {RPMA_ERROR_CODES(NAME_OF) //
                                                      NAME(ERR_TIMEOUT),
                                                      NAME(ERR_MISMATCH), NAME(ERR_SYSTEM),
                                                      NAME(ERR_CLOSED)};
#undef NAME_OF
#undef NAME
    const auto name = names.find(code);
    return name == names.end() ? "an undocumented code" : name->second;
}

void require_system(bool worked, const char *call) {
    if (worked)
        return;
    reply("errno", errno);
    reply("call", call);
    throw Failed{ERR_SYSTEM};
}

int main() {
    // The default log function is used, because these tests also run the original's library.
    rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_INFO);
    rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_LEVEL_INFO);
    // Without a buffer, because "serve" polls the descriptor for the next command.
    setvbuf(stdin, nullptr, _IONBF, 0);
    std::cout << "ready pid=" << getpid() << std::endl;
    for (std::string line; std::getline(std::cin, line);) {
        const Args args(line);
        if (args.verb() == "quit")
            return 0;
        fprintf(stderr, "---- %s\n", args.verb().c_str());
        execute(args);
    }
    return 3; // the script ended without "quit"
}
