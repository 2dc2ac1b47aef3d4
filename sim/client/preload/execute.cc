// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// execute.cc -- the functions of the C library that execute a program: the run ends if the
// program would run outside the fabric
//
// A child of vfork() shares the memory of its parent, so these functions allocate on the stack
// and take no locks.

#include <alloca.h>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <wordexp.h>

#include "../../protocol/executable.hh"
#include "../end_run.hh"
#include "preload.hh"

namespace {

constexpr char PRELOAD[] = "LD_PRELOAD=", LOST[] = "RDMA_SIM_LOST=1";

// The variables of the fabric, without LD_PRELOAD and LD_LIBRARY_PATH. NULL: not on a fabric.
char **variables;
size_t variable_count;
const char *preload, *server; // the value of LD_PRELOAD, and the path of the socket
char own_path[PATH_MAX];

bool begins_with(const char *text, const char *prefix) {
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

// ---- the file ------------------------------------------------------------------------------

[[noreturn]] void refuse(const char *file, const char *problem) {
    sim::EndRun request = {};
    snprintf(request.line, sizeof(request.line), "%.1024s, which %.256s executes: %s", file,
             program_invocation_short_name, problem);
    sim::end_run(server, request);
}

// Leaves files that cannot be executed to the real function, which returns the error.
void check(int at, const char *path, int flags = 0) {
    const int error = errno;
    char script[PATH_MAX], link[64];
    sim::Executable executable;
    if (variables == nullptr || path == nullptr)
        return;
    prctl(PR_SET_TSC, PR_TSC_ENABLE); // tsc.cc; another program has no handler yet
    const char *file = path;
    if ((flags & AT_EMPTY_PATH) != 0 && *path == '\0') {
        snprintf(link, sizeof(link), "/proc/self/fd/%d", at);
        file = link;
        at = AT_FDCWD;
        const ssize_t length = readlink(link, script, sizeof(script) - 1);
        script[length < 0 ? 0 : length] = '\0';
        path = script;
    }
    for (int i = 0; i <= sim::MAX_INTERPRETERS; i++) {
        const int fd = faccessat(at, file, X_OK, AT_EACCESS) == 0
                           ? openat(at, file, O_RDONLY | O_CLOEXEC)
                           : -1;
        if (fd < 0)
            break;
        sim::read_executable(fd, executable);
        close(fd);
        if (executable.problem != nullptr)
            refuse(path, executable.problem);
        if (executable.is_elf && access(own_path, R_OK) != 0)
            refuse(path, "cannot read the fabric's libraries: install rdma-sim where the "
                         "program can read it");
        if (executable.is_elf || executable.interpreter[0] == '\0')
            break;
        path = file = strcpy(script, executable.interpreter);
        at = AT_FDCWD;
    }
    errno = error;
}

// Checks the file that execvp() finds.
void check_in_path(const char *name) {
    const char *rest = getenv("PATH");
    if (name == nullptr || strchr(name, '/') != nullptr)
        return check(AT_FDCWD, name);
    if (rest == nullptr)
        rest = "/bin:/usr/bin";
    for (const char *end; rest != nullptr; rest = *end == '\0' ? nullptr : end + 1) {
        char path[PATH_MAX];
        end = strchrnul(rest, ':');
        const int length =
            snprintf(path, sizeof(path), "%.*s%s%s", static_cast<int>(end - rest), rest,
                     end == rest ? "" : "/", name);
        if (length < PATH_MAX && faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0)
            return check(AT_FDCWD, path);
    }
}

// ---- the environment -----------------------------------------------------------------------

// Returns true if the list, with ':' or ' ' between its entries, has all libraries of the
// fabric, as rdma-sim has listed them.
bool has_preload(const char *list) {
    const size_t length = strlen(preload);
    for (const char *at = list; (at = strstr(at, preload)) != nullptr; at++)
        if ((at == list || strchr(": ", at[-1]) != nullptr) &&
            strchr(": ", at[length]) != nullptr) // also the end of the list
            return true;
    return false;
}

bool has_variable(char *const environment[], const char *variable) {
    const auto length = static_cast<size_t>(strchr(variable, '=') + 1 - variable);
    for (; *environment != nullptr; environment++)
        if (strncmp(*environment, variable, length) == 0)
            return true;
    return false;
}

// Calls the function with the environment, to which the variables of the fabric are added if a
// wrapper has removed them: a later program that uses RDMA ends then, with a line. Others run.
template <class Function> auto with_variables(char *const environment[], Function function) {
    char *empty[] = {nullptr};
    char *const *const given = environment == nullptr ? empty : environment;
    if (variables == nullptr)
        return function(environment);
    size_t count = 0;
    const char *list = nullptr;
    for (; given[count] != nullptr; count++)
        if (list == nullptr && begins_with(given[count], PRELOAD))
            list = given[count] + strlen(PRELOAD);
    bool is_complete = list != nullptr && has_preload(list);
    for (size_t i = 0; i < variable_count; i++)
        is_complete = is_complete && has_variable(given, variables[i]);
    if (is_complete)
        return function(environment);
    auto **const all =
        static_cast<char **>(alloca((count + variable_count + 3) * sizeof(char *)));
    size_t next = 0;
    if (list == nullptr || !has_preload(list)) {
        const size_t size = sizeof(PRELOAD) + strlen(preload) + 1 + (list ? strlen(list) : 0);
        all[next] = static_cast<char *>(alloca(size));
        snprintf(all[next++], size, "%s%s%s%s", PRELOAD, preload, list ? ":" : "",
                 list ? list : "");
        all[next++] = const_cast<char *>(LOST);
    }
    for (size_t i = 0; i < count; i++)
        if (next == 0 || !begins_with(given[i], PRELOAD))
            all[next++] = given[i];
    for (size_t i = 0; i < variable_count; i++)
        if (!has_variable(given, variables[i]))
            all[next++] = variables[i];
    all[next] = nullptr;
    return function(all);
}

// For functions that use the environment of the process.
void complete_own_environment() {
    with_variables(environ, [](char *const *all) {
        if (all != environ)
            for (; *all != nullptr; all++)
                (void)putenv(strdup(*all));
        return 0;
    });
}

// ---- the real functions --------------------------------------------------------------------

auto *real_execve() {
    return REAL(execve);
}
auto *real_execvpe() {
    return REAL(execvpe);
}

// Finds the real functions here, because dlsym() takes locks.
__attribute__((constructor)) void read_environment() {
    preload = getenv("RDMA_SIM_PRELOAD");
    server = getenv("RDMA_SIM_SOCKET");
    if (preload == nullptr || server == nullptr)
        return;
    if (Dl_info self; dladdr(own_path, &self) != 0)
        snprintf(own_path, sizeof(own_path), "%s", self.dli_fname);
    (void)real_execve();
    (void)real_execvpe();
    preload = strdup(preload);
    server = strdup(server);
    size_t count = 0;
    while (environ[count] != nullptr)
        count++;
    variables = static_cast<char **>(calloc(count + 1, sizeof(char *)));
    for (size_t i = 0; variables != nullptr && i < count; i++)
        if ((begins_with(environ[i], "RDMA_SIM_") ||
             begins_with(environ[i], "ASAN_OPTIONS=")) &&
            strchr(environ[i], '=') != nullptr)
            variables[variable_count++] = strdup(environ[i]);
}

int execute(const char *path, char *const argv[], char *const environment[]) {
    check(AT_FDCWD, path);
    return with_variables(environment,
                          [&](char *const *all) { return real_execve()(path, argv, all); });
}

int execute_in_path(const char *name, char *const argv[], char *const environment[]) {
    check_in_path(name);
    return with_variables(environment,
                          [&](char *const *all) { return real_execvpe()(name, argv, all); });
}

int execute_at(int at, const char *path, char *const argv[], char *const environment[],
               int flags) {
    check(at, path, flags);
    return with_variables(environment, [&](char *const *all) {
        return static_cast<int>(syscall(SYS_execveat, at, path, argv, all, flags));
    });
}

} // namespace

EXPORTED int execve(const char *path, char *const argv[], char *const environment[]) noexcept {
    return execute(path, argv, environment);
}
EXPORTED int execv(const char *path, char *const argv[]) noexcept {
    return execute(path, argv, environ);
}
EXPORTED int execvp(const char *name, char *const argv[]) noexcept {
    return execute_in_path(name, argv, environ);
}
EXPORTED int execvpe(const char *name, char *const argv[], char *const environment[]) noexcept {
    return execute_in_path(name, argv, environment);
}
EXPORTED int execveat(int at, const char *path, char *const argv[], char *const environment[],
                      int flags) noexcept {
    return execute_at(at, path, argv, environment, flags);
}
EXPORTED int fexecve(int fd, char *const argv[], char *const environment[]) noexcept {
    return execute_at(fd, "", argv, environment, AT_EMPTY_PATH);
}

// The arguments of execl() are on the stack; those of execle() precede the environment.
#define EXECUTE_LIST(name, function, environment)                                 \
    EXPORTED int name(const char *path, const char *first, ...) noexcept {        \
        va_list arguments;                                                        \
        size_t count = 1;                                                         \
        va_start(arguments, first);                                               \
        for (const char *at = first; at != nullptr; count++)                      \
            at = va_arg(arguments, const char *);                                 \
        va_end(arguments);                                                        \
        auto **const argv = static_cast<char **>(alloca(count * sizeof(char *))); \
        argv[0] = const_cast<char *>(first);                                      \
        va_start(arguments, first);                                               \
        for (size_t i = 1; i < count; i++)                                        \
            argv[i] = va_arg(arguments, char *);                                  \
        const int result = function(path, argv, environment);                     \
        va_end(arguments);                                                        \
        return result;                                                            \
    }
EXECUTE_LIST(execl, execute, environ)
EXECUTE_LIST(execlp, execute_in_path, environ)
EXECUTE_LIST(execle, execute, va_arg(arguments, char **))

#define SPAWN(name, check_file)                                                                \
    EXPORTED int name(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions, \
                      const posix_spawnattr_t *attr, char *const argv[],                       \
                      char *const environment[]) {                                             \
        check_file;                                                                            \
        return with_variables(environment, [&](char *const *all) {                             \
            return REAL(name)(pid, file, actions, attr, argv, all);                            \
        });                                                                                    \
    }
SPAWN(posix_spawn, check(AT_FDCWD, file))
SPAWN(posix_spawnp, check_in_path(file))

// These execute /bin/sh.
EXPORTED int system(const char *command) {
    check(AT_FDCWD, "/bin/sh");
    complete_own_environment();
    return REAL(system)(command);
}
EXPORTED FILE *popen(const char *command, const char *mode) {
    check(AT_FDCWD, "/bin/sh");
    complete_own_environment();
    return REAL(popen)(command, mode);
}
EXPORTED int wordexp(const char *words, wordexp_t *expanded, int flags) {
    check(AT_FDCWD, "/bin/sh");
    complete_own_environment();
    return REAL(wordexp)(words, expanded, flags);
}
