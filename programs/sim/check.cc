// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// check.cc -- refuses commands that cannot run on the fabric, before any of them starts

#include "sim.hh"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <libgen.h>
#include <link.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace {

constexpr int MAX_INTERPRETERS = 4; // nested scripts, as in Linux

std::string read_link(const char *path) {
    char text[PATH_MAX];
    const ssize_t length = readlink(path, text, sizeof(text));
    return {text, length < 0 ? 0 : static_cast<size_t>(length)};
}

bool exists(const std::string &path) {
    return access(path.c_str(), F_OK) == 0;
}

// Returns the file that execvp() would execute.
std::string find_file(const char *command) {
    if (strchr(command, '/') != nullptr)
        return command;
    const char *const path = getenv("PATH");
    for (std::string_view rest = path == nullptr ? "/usr/bin:/bin" : path; !rest.empty();) {
        const size_t end = std::min(rest.find(':'), rest.size());
        const std::string file = std::string(rest.substr(0, end)) + "/" + command;
        if (access(file.c_str(), X_OK) == 0)
            return file;
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    refuse("%s: not found in PATH", command);
}

struct Elf {
    ElfW(Ehdr) header{};
    std::string interpreter; // empty: the program has none
};

bool read_at(int fd, void *to, size_t length, off_t offset) {
    return pread(fd, to, length, offset) == static_cast<ssize_t>(length);
}

Elf read_elf(int fd) {
    Elf elf;
    if (!read_at(fd, &elf.header, sizeof(elf.header), 0))
        elf.header = {};
    for (unsigned i = 0; i < elf.header.e_phnum; i++) {
        ElfW(Phdr) segment;
        char text[PATH_MAX] = "";
        if (!read_at(fd, &segment, sizeof(segment),
                     static_cast<off_t>(elf.header.e_phoff + i * sizeof(segment))))
            break;
        if (segment.p_type == PT_INTERP && segment.p_filesz < sizeof(text) &&
            read_at(fd, text, segment.p_filesz, static_cast<off_t>(segment.p_offset)))
            elf.interpreter = text;
    }
    return elf;
}

void check_file(const std::string &file) {
    struct stat status;
    if (stat(file.c_str(), &status) != 0)
        refuse("%s: %s", file.c_str(), strerror(errno));
    if (!S_ISREG(status.st_mode))
        refuse("%s: not a file that can be executed", file.c_str());
    if (access(file.c_str(), X_OK) != 0)
        refuse("%s: not executable: use chmod +x", file.c_str());
    if ((status.st_mode & (S_ISUID | S_ISGID)) != 0 ||
        getxattr(file.c_str(), "security.capability", nullptr, 0) > 0)
        refuse(
            "%s: has the rights of another user (setuid, setgid or capabilities), so that the "
            "dynamic linker ignores the fabric's libraries: run a copy without them",
            file.c_str());
}

// Runs a program and returns its output on both streams.
std::string output_of(char *const argv[], const Libraries &libraries) {
    int pipe_ends[2];
    std::string output;
    if (pipe2(pipe_ends, O_CLOEXEC) != 0)
        refuse("pipe: %s", strerror(errno));
    const pid_t pid = fork();
    if (pid == 0) {
        const char *const path = getenv("LD_LIBRARY_PATH"), *const preload =
                                                                getenv("LD_PRELOAD");
        setenv("LD_LIBRARY_PATH",
               (libraries.shims + ":" + (path == nullptr ? "" : path)).c_str(), 1);
        if (preload != nullptr)
            setenv("LD_PRELOAD", (libraries.preload + ":" + preload).c_str(), 1);
        dup2(pipe_ends[1], STDOUT_FILENO);
        dup2(pipe_ends[1], STDERR_FILENO);
        execv(argv[0], argv);
        _exit(127);
    }
    close(pipe_ends[1]);
    char part[4096];
    for (ssize_t length; (length = read(pipe_ends[0], part, sizeof(part))) > 0;)
        output.append(part, static_cast<size_t>(length));
    close(pipe_ends[0]);
    if (pid > 0)
        waitpid(pid, nullptr, 0);
    return output;
}

bool is_same_file(const std::string &path, const std::string &other) {
    struct stat status, other_status;
    return stat(path.c_str(), &status) == 0 && stat(other.c_str(), &other_status) == 0 &&
           status.st_dev == other_status.st_dev && status.st_ino == other_status.st_ino;
}

void check_line(const std::string &file, const std::string &line, const Libraries &libraries) {
    char name[256], path[PATH_MAX];
    if (line.find("version `") != line.npos)
        refuse("%s: needs a newer library: %s", file.c_str(), line.c_str());
    if (line.find("=> not found") != line.npos && sscanf(line.c_str(), " %255s =>", name) == 1)
        refuse("%s: the library %s is missing: install it", file.c_str(), name);
    // A library of LD_PRELOAD, or one with a path, has a line without an arrow.
    if (sscanf(line.c_str(), " %255s => %4095s", name, path) != 2) {
        if (sscanf(line.c_str(), " %4095s (", path) != 1)
            return;
        snprintf(name, sizeof(name), "%s", basename(path));
    }
    if (strcmp(name, "libibverbs.so.1") != 0 && strcmp(name, "librdmacm.so.1") != 0)
        return;
    if (!is_same_file(path, libraries.shims + "/" + name))
        refuse("%s: loads another %s (%s), which its RPATH or LD_PRELOAD names: remove that",
               file.c_str(), name, path);
}

// Calls the function with each line of the dynamic linker's list of the file's libraries.
template <class Function>
void for_each_library(const std::string &file, const std::string &interpreter,
                      const Libraries &libraries, Function function) {
    char *const argv[] = {const_cast<char *>(interpreter.c_str()), const_cast<char *>("--list"),
                          const_cast<char *>(file.c_str()), nullptr};
    const std::string output = output_of(argv, libraries);
    for (size_t begin = 0; begin < output.size();) {
        const size_t end = std::min(output.find('\n', begin), output.size());
        function(output.substr(begin, end - begin));
        begin = end + 1;
    }
}

// Returns the interpreter of a script's "#!" line, or the program that it runs by env(1).
// Empty: not a script.
std::string interpreter_of_script(int fd) {
    char line[256] = "", word[256] = "", argument[256] = "";
    if (pread(fd, line, sizeof(line) - 1, 0) < 3 || line[0] != '#' || line[1] != '!')
        return "";
    (void)sscanf(line + 2, "%255s %255s", word, argument);
    return strcmp(basename(word), "env") == 0 && argument[0] != '-' && argument[0] != '\0'
               ? find_file(argument)
               : word;
}

void check_elf(const std::string &file, const Elf &elf, const Libraries &libraries) {
    const int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    const Elf own_elf = read_elf(self);
    close(self);
    if (memcmp(elf.header.e_ident, ELFMAG, SELFMAG) != 0)
        refuse("%s: neither a program nor a script with '#!'", file.c_str());
    if (elf.header.e_ident[EI_CLASS] != own_elf.header.e_ident[EI_CLASS] ||
        elf.header.e_ident[EI_DATA] != own_elf.header.e_ident[EI_DATA] ||
        elf.header.e_machine != own_elf.header.e_machine)
        refuse("%s: built for another architecture: use a program for this one", file.c_str());
    if (elf.interpreter.empty())
        refuse("%s: linked statically, so that it loads no libibverbs: link it dynamically",
               file.c_str());
    if (elf.interpreter != own_elf.interpreter)
        refuse("%s: built for another C library (%s): use a program for %s", file.c_str(),
               elf.interpreter.c_str(), own_elf.interpreter.c_str());
    for_each_library(file, elf.interpreter, libraries,
                     [&](const std::string &line) { check_line(file, line, libraries); });
}

} // namespace

Libraries find_libraries(bool with_pmem, bool explores) {
    const std::string self = read_link("/proc/self/exe");
    const std::string build = self.substr(0, self.rfind('/')) + "/../../sim";
    const bool is_installed = !exists(build + "/libibverbs.so.1");
    const std::string preloads = is_installed ? RPMA_SIM_LIBDIR : build + "/preload";
    Libraries found = {is_installed ? RPMA_SIM_LIBDIR : build,
                       preloads + "/librpma-sim-preload.so"};
    if (with_pmem)
        found.preload += ":" + preloads + "/librpma-sim-pmem.so";
    if (explores)
        found.preload = preloads + "/librpma-sim-explore.so:" + found.preload;
    for (const char *const name : {"/libibverbs.so.1", "/librdmacm.so.1"})
        if (!exists(found.shims + name))
            refuse("%s%s is missing: install rpma-sim again", found.shims.c_str(), name);
    return found;
}

void check_command(const Command &command, const Libraries &libraries) {
    std::string file = find_file(command.argv[0]);
    for (int i = 0; i < MAX_INTERPRETERS; i++) {
        check_file(file);
        const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            refuse("%s: %s", file.c_str(), strerror(errno));
        const std::string interpreter = interpreter_of_script(fd);
        const Elf elf = read_elf(fd);
        close(fd);
        if (interpreter.empty())
            return check_elf(file, elf, libraries);
        file = interpreter;
    }
    refuse("%s: too many scripts that interpret each other", command.argv[0]);
}

std::vector<std::string> files_of(const Command &command, const Libraries &libraries) {
    std::vector<std::string> files;
    std::string file = find_file(command.argv[0]);
    for (int i = 0; i < MAX_INTERPRETERS; i++) {
        const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC);
        const std::string interpreter = fd < 0 ? "" : interpreter_of_script(fd);
        const Elf elf = read_elf(fd);
        if (fd >= 0)
            close(fd);
        files.push_back(file);
        if (interpreter.empty()) {
            for_each_library(file, elf.interpreter, libraries, [&](const std::string &line) {
                char path[PATH_MAX];
                if (sscanf(line.c_str(), " %*s => %4095s", path) == 1 && path[0] == '/' &&
                    !std::string(path).starts_with(libraries.shims))
                    files.push_back(path);
            });
            break;
        }
        file = interpreter;
    }
    return files;
}
