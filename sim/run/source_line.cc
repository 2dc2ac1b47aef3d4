// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// source_line.cc -- the lines of a program's source, from its debug information by addr2line(1)

#include "source_line.hh"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <set>
#include <sstream>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim.hh"

namespace {

// Those of binutils, elfutils and LLVM have the same options.
constexpr const char *TOOLS[] = {"addr2line", "eu-addr2line", "llvm-addr2line"};
// Inline functions of <infiniband/verbs.h> and <rdma/rdma_verbs.h>, which the program calls.
// Their names: addr2line of binutils 2.40 names other files for functions of headers.
constexpr const char *INLINE[] = {
    "ibv_",         "__ibv_",     "rdma_post_",         "rdma_reg_",
    "rdma_read",    "rdma_write", "rdma_get_send_comp", "rdma_get_recv_comp",
    "rdma_dereg_mr"};
constexpr size_t MAX_CALLERS = 12;

struct Mapping {
    uint64_t begin, end, offset;
    std::string file;
};

std::vector<Mapping> code_of(pid_t pid) {
    std::vector<Mapping> all;
    FILE *const maps = fopen(("/proc/" + std::to_string(pid) + "/maps").c_str(), "re");
    char line[4608], permissions[8];
    for (Mapping each; maps != nullptr && fgets(line, sizeof(line), maps) != nullptr;) {
        int path = 0;
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %n", &each.begin,
                   &each.end, permissions, &each.offset, &path) < 4 ||
            permissions[2] != 'x' || line[path] != '/')
            continue;
        each.file = line + path;
        each.file.resize(std::min(each.file.find('\n'), each.file.size()));
        all.push_back(each);
    }
    if (maps != nullptr)
        fclose(maps);
    return all;
}

// Returns the address in the symbol table for an offset in the file: they differ in a program
// that is linked for fixed addresses, or by LLVM.
uint64_t address_of(const std::string &file, uint64_t offset) {
    const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC);
    Elf64_Ehdr head{};
    uint64_t address = offset;
    if (fd >= 0 && pread(fd, &head, sizeof(head), 0) == sizeof(head) &&
        memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 && head.e_ident[EI_CLASS] == ELFCLASS64)
        for (unsigned i = 0; i < head.e_phnum; i++) {
            Elf64_Phdr segment{};
            const auto at = static_cast<off_t>(head.e_phoff + i * sizeof(segment));
            if (pread(fd, &segment, sizeof(segment), at) == sizeof(segment) &&
                segment.p_type == PT_LOAD && offset >= segment.p_offset &&
                offset < segment.p_offset + segment.p_filesz)
                address = offset - segment.p_offset + segment.p_vaddr;
        }
    if (fd >= 0)
        close(fd);
    return address;
}

// Runs the tool. Returns false if it is not installed.
bool run_tool(const char *tool, const std::string &file, const std::string &input,
              std::string &output) {
    const int in = memfd_create("addresses", MFD_CLOEXEC),
              out = memfd_create("lines", MFD_CLOEXEC),
              none = open("/dev/null", O_RDWR | O_CLOEXEC);
    int status = 127 << 8;
    if (in >= 0 && out >= 0 && none >= 0 &&
        pwrite(in, input.data(), input.size(), 0) == static_cast<ssize_t>(input.size())) {
        const pid_t pid = fork_command(false, out, none, [&] {
            dup2(in, STDIN_FILENO);
            execlp(tool, tool, "-a", "-f", "-i", "-C", "-e", file.c_str(), nullptr);
            _exit(127);
        });
        waitpid(pid, &status, 0);
        std::array<char, 4096> part;
        for (ssize_t length; (length = pread(out, part.data(), part.size(),
                                             static_cast<off_t>(output.size()))) > 0;)
            output.append(part.data(), static_cast<size_t>(length));
    }
    for (const int fd : {in, out, none})
        if (fd >= 0)
            close(fd);
    return !WIFEXITED(status) || WEXITSTATUS(status) != 127;
}

// Returns "FILE:LINE" of a line such as "/path/main.c:12 (discriminator 3)" or, by elfutils,
// "/path/main.c:12:7". Empty if it has no number.
std::string file_and_line(std::string text) {
    text.resize(std::min(text.find(" (discriminator"), text.size()));
    const auto is_number = [](std::string_view word) {
        return !word.empty() && word != "0" &&
               word.find_first_not_of("0123456789") == word.npos;
    };
    const size_t last = text.rfind(':');
    if (last == text.npos || text.starts_with("??") || !is_number(text.substr(last + 1)))
        return "";
    const size_t before = text.rfind(':', last - 1);
    if (before != text.npos && is_number(text.substr(before + 1, last - before - 1)))
        text.resize(last);
    char *const directory = getcwd(nullptr, 0);
    if (directory != nullptr && text.starts_with(std::string(directory) + "/"))
        text.erase(0, strlen(directory) + 1);
    free(directory);
    return text;
}

bool is_of_header(std::string_view function) {
    return std::ranges::any_of(
        INLINE, [&](const char *prefix) { return function.starts_with(prefix); });
}

std::string name_of(const std::string &file) {
    return file.substr(file.rfind('/') + 1);
}

} // namespace

size_t SourceLines::add(pid_t pid, std::span<const uint64_t> addresses) {
    const std::vector<Mapping> code = code_of(pid);
    char path[4096];
    const ssize_t length =
        readlink(("/proc/" + std::to_string(pid) + "/exe").c_str(), path, sizeof(path));
    const std::string_view program(path, length < 0 ? 0 : static_cast<size_t>(length));
    Call call{};
    for (const uint64_t address : addresses) {
        const auto found = std::ranges::find_if(code, [&](const Mapping &each) {
            return each.begin < address && address <= each.end;
        });
        if (found == code.end() || found->file.substr(0, found->file.rfind('/')) == libraries_)
            continue;
        // The call is before its return address.
        call.callers.push_back(
            {found->file, address_of(found->file, address - 1 - found->begin + found->offset)});
        if (call.program + 1 == call.callers.size() && found->file != program)
            call.program++;
        if (call.callers.size() == MAX_CALLERS)
            break;
    }
    return call.callers.empty() ? 0 : number_of(call);
}

size_t SourceLines::add(std::string file, uint64_t offset) {
    return number_of({{{std::move(file), offset}}, 0});
}

size_t SourceLines::number_of(const Call &call) {
    const auto [number, is_new] = numbers_.emplace(call, calls_.size() + 1);
    if (is_new)
        calls_.push_back(call);
    return number->second;
}

void SourceLines::resolve(std::span<const size_t> numbers) {
    std::map<std::string, std::set<uint64_t>> offsets;
    for (const size_t number : numbers)
        if (number != 0)
            for (const Address &each : calls_[number - 1].callers)
                if (!lines_.contains(each))
                    offsets[each.file].insert(each.offset);
    for (const auto &[file, all] : offsets) {
        std::ostringstream input;
        std::string output;
        for (const uint64_t offset : all)
            input << "0x" << std::hex << offset << "\n";
        has_tool_ = std::ranges::any_of(TOOLS, [&, &name = file](const char *tool) {
            return run_tool(tool, name, input.str(), output);
        });
        // For each address: itself, and a function and a line for each inline function and for
        // the one that contains them.
        std::istringstream lines(output);
        Address at{file, 0};
        for (std::string function, line; std::getline(lines, function);) {
            if (function.starts_with("0x")) {
                at.offset = strtoull(function.c_str(), nullptr, 16);
                continue;
            }
            std::getline(lines, line);
            if (const std::string found = file_and_line(line);
                !found.empty() && !is_of_header(function))
                lines_.emplace(at, found);
        }
    }
}

std::string SourceLines::at(size_t number) const {
    if (number == 0)
        return "";
    const Call &call = calls_[number - 1];
    // Those of the program, then of the libraries that it has called; not of those that call
    // it.
    std::vector<Address> order;
    for (size_t i = call.program;
         i < call.callers.size() && call.callers[i].file == call.callers[call.program].file;
         i++)
        order.push_back(call.callers[i]);
    order.insert(order.end(), call.callers.begin(),
                 call.callers.begin() +
                     static_cast<std::ptrdiff_t>(std::min(call.program, call.callers.size())));
    for (const Address &each : order)
        if (const auto found = lines_.find(each); found != lines_.end())
            return found->second;
    const Address &caller = call.callers.front();
    char offset[32];
    snprintf(offset, sizeof(offset), "+0x%" PRIx64, caller.offset);
    return printable(name_of(caller.file)) + offset;
}

std::string SourceLines::hint(size_t number) const {
    if (number == 0)
        return "";
    const Call &call = calls_[number - 1];
    if (std::ranges::any_of(call.callers,
                            [&](const Address &each) { return lines_.contains(each); }))
        return "";
    if (!has_tool_)
        return "install binutils: addr2line finds the lines of calls";
    const Address &at = call.callers[call.program % call.callers.size()];
    return "compile " + printable(name_of(at.file)) +
           " with -g: it has no debug information for the lines of calls";
}
