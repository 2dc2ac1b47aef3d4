// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// check.cc -- refuses commands that cannot run on the fabric, before any of them starts

#include "../protocol/dispatch.hh"
#include "../protocol/executable.hh"
#include "sim.hh"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <fstream>
#include <libgen.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

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

void check_file(const std::string &file) {
    struct stat status;
    if (stat(file.c_str(), &status) != 0)
        refuse("%s: %s", file.c_str(), strerror(errno));
    if (!S_ISREG(status.st_mode))
        refuse("%s: not a file that can be executed", file.c_str());
    if (access(file.c_str(), X_OK) != 0)
        refuse("%s: not executable: use chmod +x", file.c_str());
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
    if (interpreter.empty()) // linked statically
        return;
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
std::string interpreter_of_script(int fd, const char *interpreter) {
    char line[256] = "", argument[256] = "";
    if (std::string_view(interpreter).ends_with("/env") &&
        pread(fd, line, sizeof(line) - 1, 0) > 2 &&
        sscanf(line + 2, "%*s %255s", argument) == 1 && argument[0] != '-')
        return find_file(argument);
    return interpreter;
}

// Returns the files that are executed for a command: scripts, and at the end a program, which
// `executable` describes.
std::vector<std::string> executed_files(const Command &command, sim::Executable &executable) {
    std::vector<std::string> files = {find_file(command.argv[0])};
    while (files.size() <= sim::MAX_INTERPRETERS) {
        const std::string &file = files.back();
        check_file(file);
        const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            refuse("%s: %s", file.c_str(), strerror(errno));
        sim::read_executable(fd, executable);
        if (!executable.is_elf && executable.interpreter[0] != '\0') {
            files.push_back(interpreter_of_script(fd, executable.interpreter));
            close(fd);
            continue;
        }
        close(fd);
        if (!executable.is_elf)
            refuse("%s: neither a program nor a script with '#!'", file.c_str());
        if (executable.problem != nullptr)
            refuse("%s: %s", file.c_str(), executable.problem);
        return files;
    }
    refuse("%s: too many scripts that interpret each other", command.argv[0]);
}

bool has_section(const std::string &file, const char *name) {
    std::ifstream in(file, std::ios::binary);
    Elf64_Ehdr head{};
    const auto read_at = [&](uint64_t offset, void *to, size_t size) {
        in.seekg(static_cast<std::streamoff>(offset));
        return !!in.read(static_cast<char *>(to), static_cast<std::streamsize>(size));
    };
    if (!read_at(0, &head, sizeof(head)) || head.e_ident[EI_CLASS] != ELFCLASS64)
        return false;
    std::vector<Elf64_Shdr> sections(head.e_shnum);
    if (head.e_shstrndx >= sections.size() ||
        !read_at(head.e_shoff, sections.data(), sections.size() * sizeof(sections[0])))
        return false;
    const uint64_t names = sections[head.e_shstrndx].sh_offset;
    std::string found(strlen(name) + 1, '\0');
    return std::ranges::any_of(sections, [&](const Elf64_Shdr &section) {
        in.clear();
        return read_at(names + section.sh_name, found.data(), found.size()) &&
               strcmp(found.c_str(), name) == 0;
    });
}

} // namespace

Libraries find_libraries(bool with_pmem, bool explores, bool is_strict) {
    const std::string self = read_link("/proc/self/exe");
    const std::string build = self.substr(0, self.rfind('/'));
    const std::string directory =
        exists(build + "/librdma-sim-preload.so") ? build : RDMA_SIM_LIBDIR;
    Libraries found = {directory, directory + "/librdma-sim-preload.so"};
    if (with_pmem)
        found.preload += ":" + directory + "/librdma-sim-pmem.so";
    if (is_strict)
        found.preload += ":" + directory + "/librdma-sim-strict.so";
    if (explores)
        found.preload = directory + "/librdma-sim-explore.so:" + found.preload;
    for (const char *const name : {"/libibverbs.so.1", "/librdmacm.so.1"})
        if (!exists(found.shims + name))
            refuse("%s%s is missing: install rdma-sim again", found.shims.c_str(), name);
    return found;
}

void check_command(const Command &command, const Libraries &libraries, bool explores) {
    sim::Executable executable;
    const std::string file = executed_files(command, executable).back();
    for_each_library(file, executable.interpreter, libraries,
                     [&](const std::string &line) { check_line(file, line, libraries); });
    if (explores && !sim::can_dispatch_calls() && has_section(file, ".go.buildinfo"))
        refuse(
            "%s: is a program of Go, whose threads wait without the C library, which explore "
            "controls on x86-64 with Linux 5.11 or later",
            file.c_str());
}

std::vector<std::string> files_of(const Command &command, const Libraries &libraries) {
    sim::Executable executable;
    std::vector<std::string> files = executed_files(command, executable);
    for_each_library(files.back(), executable.interpreter, libraries,
                     [&](const std::string &line) {
                         char path[PATH_MAX];
                         if (sscanf(line.c_str(), " %*s => %4095s", path) == 1 &&
                             path[0] == '/' && !std::string(path).starts_with(libraries.shims))
                             files.push_back(path);
                     });
    return files;
}
