// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// process.cc -- loads programs and switches between them

#include "process.hh"
#include "simulation.hh"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <link.h>
#include <unistd.h>

namespace {

constexpr size_t STACK_SIZE = size_t{256} << 10;

[[noreturn]] void exit_with_error(const std::string &what) {
    fprintf(stderr, "simulator: %s\n", what.c_str());
    exit(EXIT_FAILURE);
}

// The loader loads a file only once, so each process needs its own copy of the file.
std::string copy_module(const std::string &module) {
    char name[] = "/tmp/simulator-XXXXXX";
    std::error_code error;
    int file = mkstemp(name);
    if (file < 0 || !std::filesystem::copy_file(
                        module, name, std::filesystem::copy_options::overwrite_existing, error))
        exit_with_error("cannot copy " + module + " to /tmp");
    close(file);
    return name;
}

// Finds the writable segments with their initial content. Modules are linked without RELRO, so
// that these stay writable.
std::vector<Process::Globals> find_globals(void *module) {
    std::vector<Process::Globals> globals;
    link_map *map;
    if (dlinfo(module, RTLD_DI_LINKMAP, &map))
        exit_with_error("dlinfo() fails for a module");
    auto *base = reinterpret_cast<char *>(map->l_addr);
    const auto *header = reinterpret_cast<const ElfW(Ehdr) *>(base);
    const auto *segment = reinterpret_cast<const ElfW(Phdr) *>(base + header->e_phoff);
    for (const auto *end = segment + header->e_phnum; segment < end; segment++) {
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_W))
            continue;
        char *const begin = base + segment->p_vaddr;
        size_t used = segment->p_memsz; // without the zeros at its end
        while (used > segment->p_filesz && begin[used - 1] == 0)
            used--;
        globals.push_back({begin, std::string(begin, used), segment->p_memsz - used});
    }
    return globals;
}

} // namespace

void Process::load(const std::string &module) {
    std::string file = copy_module(module);
    void *handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    unlink(file.c_str());
    if (!handle)
        exit_with_error(std::string("cannot load ") + module + ": " + dlerror());
    main_ = reinterpret_cast<int (*)(int, char **)>(dlsym(handle, "main"));
    if (!main_)
        exit_with_error(module + " has no main()");
    globals_ = find_globals(handle);
}

void Process::start(const std::vector<std::string> &arguments) {
    for (const auto &[begin, initial, zeros] : globals_) {
        memcpy(begin, initial.data(), initial.size());
        clear_memory(begin + initial.size(), zeros);
    }
    for (Map &map : maps_)
        map.used = false;
    heap.reset();
    arguments_ = arguments;
    const auto run = [this] {
        char *argv[40] = {}; // needs no release, because the stack is abandoned
        int argc = 0;
        for (std::string &argument : arguments_)
            argv[argc++] = argument.data();
        end(main_(argc, argv));
    };
    if (!coroutine_.start(run, STACK_SIZE))
        exit_with_error("no memory for the stack of a program");
    starts++;
    state = READY;
    restart_at = NEVER;
    static_cast<RunState &>(*this) = {};
}

// Abandons the stack of the program, as if it was killed.
void Process::end(int code) {
    state = OFF;
    status = code;
    frozen_until = 0;
    simulation.process_ended(*this);
}

void Process::resume() {
    simulation.current = this;
    state = READY;
    coroutine_.resume();
    simulation.current = nullptr;
}

void Process::yield() {
    coroutine_.yield();
}

void Process::wait_until(const pollfd *waited_fds, size_t count, int64_t until) {
    fds = waited_fds;
    fd_count = count;
    deadline = until;
    state = WAITING;
    yield();
}

void *Process::map_memory(size_t size) {
    for (Map &map : maps_)
        if (!map.used && map.size == size) {
            clear_map(map.ptr, size);
            map.used = true;
            return map.ptr;
        }
    maps_.push_back({map_anonymous(size), size, true});
    return maps_.back().ptr;
}

void Process::unmap_memory(void *ptr) {
    for (Map &map : maps_)
        if (map.ptr == ptr)
            map.used = false;
}
