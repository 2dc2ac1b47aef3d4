// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// perf_kernel.cc -- rpma-perf and the kernel: signals, waits, clocks and memory. Replaced
// system calls simulate persistent memory on machines without it.

#include "failure.hh"
#include "mapping.hh"
#include "waiting.hh"

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdarg>
#include <fcntl.h>
#include <fstream>
#include <functional>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

extern "C" {
#include <cmocka.h>
}

static bool has_dax; // a file is on FS-DAX, and /dev/zero is a device DAX of 8192 bytes
static size_t unmapped;
static char size_path[] = "/tmp/rpma-perf-XXXXXX";

extern "C" void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset) {
    if (has_dax && flags & MAP_SYNC)
        flags = MAP_SHARED;
    return reinterpret_cast<void *>(syscall(SYS_mmap, at, size, protection, flags, fd, offset));
}

extern "C" int munmap(void *at, size_t size) {
    unmapped = size;
    return static_cast<int>(syscall(SYS_munmap, at, size));
}

// std::ifstream calls this function.
extern "C" FILE *fopen64(const char *path, const char *mode) {
    const bool is_size = has_dax && strcmp(path, "/sys/dev/char/1:5/size") == 0;
    return fdopen(open(is_size ? size_path : path, *mode == 'r' ? O_RDONLY : O_RDWR), mode);
}

static std::string failure_of(const std::function<void()> &call) {
    try {
        call();
    } catch (const std::runtime_error &why) {
        return why.what();
    }
    return "";
}

// ---- memory ---------------------------------------------------------------------------------

static void dram_is_zeroed(void **) {
    {
        Mapping memory = Mapping::allocate(5000);
        assert_int_equal(memory.size(), 5000);
        assert_true(std::all_of(memory.data(), memory.data() + 5000,
                                [](char byte) { return byte == 0; }));
        memory.data()[4999] = 'x';
        assert_string_equal(memory.kind(), "dram");
        assert_false(memory.is_persistent());
    }
    assert_int_equal(unmapped, 5000);
    assert_string_equal(failure_of([] { (void)Mapping::allocate(SIZE_MAX / 2); }).c_str(),
                        "cannot allocate 9223372036854775807 bytes: Cannot allocate memory");
}

// A file is mapped completely and shared.
static void files_are_mapped(void **) {
    static constexpr size_t FILE_SIZE = (UINT64_C(1) << 32) + 5000; // needs more than 32 bits
    static const struct {
        bool has_dax;
        const char *path; // "": a sparse file of FILE_SIZE bytes
        int protection;
        const char *kind;
        bool is_persistent;
        size_t size; // 0: any
    } cases[] = {
        {false, "", PROT_READ | PROT_WRITE, "file", false, FILE_SIZE},
        {true, "", PROT_READ | PROT_WRITE, "fsdax", true, FILE_SIZE},
        {true, "/dev/zero", PROT_READ | PROT_WRITE, "devdax", true, 8192},
        {false, "/proc/self/exe", PROT_READ, "file", false, 0}, // not writable
    };
    for (const auto &[dax, given, protection, kind, is_persistent, size] : cases) {
        char path[] = "/tmp/rpma-perf-XXXXXX";
        const int fd = mkstemp(path);
        assert_true(fd >= 0 && ftruncate(fd, FILE_SIZE) == 0);
        has_dax = dax;
        const Mapping memory = Mapping::map(*given ? given : path, protection);
        assert_string_equal(memory.kind(), kind);
        assert_int_equal(memory.is_persistent(), is_persistent);
        assert_true(!size || memory.size() == size);
        if (!*given)
            memory.data()[FILE_SIZE - 1] = 'x';
        char byte = 0;
        assert_true(*given || (pread(fd, &byte, 1, FILE_SIZE - 1) == 1 && byte == 'x'));
        has_dax = false;
        close(fd);
        unlink(path);
    }
}

static void invalid_memory_is_rejected(void **) {
    const std::pair<const char *, const char *> cases[] = {
        {"/nowhere", "/nowhere: No such file or directory"},
        {"/dev/zero", "/dev/zero is neither a file nor a device DAX"},
        {"/proc/self", "/proc/self is neither a file nor a device DAX"},
        {"/proc/self/stat", "/proc/self/stat is empty: its size is the usable size"}};
    for (const auto &row : cases)
        assert_string_equal(
            failure_of([&row] { (void)Mapping::map(row.first, PROT_READ); }).c_str(),
            row.second);
}

// ---- waiting --------------------------------------------------------------------------------

// Epoll::add() accepts any number, and the destructor closes the epoll descriptor.
static void readable_descriptors_are_found(void **) {
    constexpr uint64_t NUMBER = UINT64_C(1) << 40;
    std::array<epoll_event, 2> room;
    int closed = -1;
    {
        const Epoll epoll;
        const int silent = eventfd(0, 0), readable = eventfd(1, 0);
        epoll.add(silent, NUMBER - 1);
        assert_int_equal(wait_for(epoll, room, 0).size(), 0);
        epoll.add(readable, NUMBER);
        const auto found = wait_for(epoll, room, -1);
        assert_int_equal(found.size(), 1);
        assert_true(found[0].data.u64 == NUMBER);
        close(silent);
        close(readable);
        assert_string_equal(failure_of([&] { epoll.add(-1, 0); }).c_str(),
                            "epoll_ctl: Bad file descriptor");
        closed = epoll.fd;
    }
    assert_int_equal(fcntl(closed, F_GETFD), -1);
}

static void expect_in_child(bool holds, int step) {
    if (!holds)
        _exit(step);
}

// Runs in a child process: a stop signal is delivered only during a wait, and other signals do
// not stop the program.
[[noreturn]] static void take_signals(int stop) {
    signals_init();
    struct sigaction waking {};
    sigaction(WAKE_SIGNAL, nullptr, &waking);
    expect_in_child(!(waking.sa_flags & SA_RESTART), 1);
    raise(WAKE_SIGNAL);
    raise(SIGPIPE);
    raise(stop);
    expect_in_child(!is_stopping(), 2);
    const Epoll epoll;
    std::array<epoll_event, 1> room;
    expect_in_child(wait_for(epoll, room, -1).empty() && is_stopping(), 3);
    _exit(0);
}

static void wait_is_interrupted_by_signals(void **) {
    for (const int stop : {SIGINT, SIGTERM}) {
        const pid_t child = fork();
        if (child == 0)
            take_signals(stop);
        int status = -1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
}

static uint64_t time_of(clockid_t clock) {
    timespec time;
    clock_gettime(clock, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1000000000 +
           static_cast<uint64_t>(time.tv_nsec);
}

// Both clocks return nanoseconds; the processor time includes all threads.
static void clocks_match_the_kernel(void **) {
    std::jthread worker([](const std::stop_token &token) {
        while (!token.stop_requested())
            continue;
    });
    const uint64_t began = time_of(CLOCK_THREAD_CPUTIME_ID);
    while (time_of(CLOCK_THREAD_CPUTIME_ID) - began < 1000000)
        continue;
    const std::pair<clockid_t, uint64_t (*)()> clocks[] = {{CLOCK_MONOTONIC, now_ns},
                                                           {CLOCK_PROCESS_CPUTIME_ID, cpu_ns}};
    for (const auto &[clock, ask] : clocks) {
        const uint64_t before = time_of(clock), asked = ask();
        assert_true(before <= asked && asked <= time_of(clock));
    }
}

int main() {
    close(mkstemp(size_path));
    std::ofstream(size_path) << "8192\n";
    const CMUnitTest tests[] = {
        cmocka_unit_test(dram_is_zeroed),
        cmocka_unit_test(files_are_mapped),
        cmocka_unit_test(invalid_memory_is_rejected),
        cmocka_unit_test(readable_descriptors_are_found),
        cmocka_unit_test(wait_is_interrupted_by_signals),
        cmocka_unit_test(clocks_match_the_kernel),
    };
    const int failed = cmocka_run_group_tests(tests, nullptr, nullptr);
    unlink(size_path);
    return failed;
}
