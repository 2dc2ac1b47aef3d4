// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// check_ledger_file.cc -- the ledger of rpma-check --power-cut: its format, and errors of the
// disk. "check_ledger.py known" prints the expected values.

#include "power_cut.hh"

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

extern "C" {
#include <cmocka.h>
}

static constexpr Rings known = {
    .run = UINT64_C(0xfedcba9876543210), .streams = 2, .places = 256};

static int write_error, sync_error; // of the next call

// Writes few bytes per call, as remote file systems may do.
extern "C" ssize_t write(int fd, const void *bytes, size_t size) {
    errno = std::exchange(write_error, 0);
    return errno ? -1 : syscall(SYS_write, fd, bytes, std::min<size_t>(size, 7));
}

extern "C" int fdatasync(int) {
    errno = std::exchange(sync_error, 0);
    return errno ? -1 : 0;
}

// The text of a new ledger, or the failure to create it.
static std::string text_of_ledger(const char *path) {
    try {
        Ledger ledger(path, known);
        for (const Progress &line :
             {Progress{0, 3, 200}, {1, 2, 130}, {0, 400, 460}, {1, 300, 310}})
            ledger.add(line);
        write_error = sync_error = EINTR;
        ledger.sync();
    } catch (const Failure &why) {
        return why.what();
    }
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

static void ledger_lines_follow_the_format(void **) {
    static const char wanted[] =
        "rpma-check power cut 1: run fedcba9876543210, streams 2, places 256 5d7c94cf\n"
        "0 3 200 aa6025d3\n1 2 130 181cea4d\n0 400 460 e4accbeb\n1 300 310 7c7e6164\n";
    const struct {
        int write_error, sync_error;
        const char *begin;
    } cases[] = {{0, 0, wanted},
                 {EINTR, EINTR, wanted},
                 {ENOSPC, 0, "cannot write /tmp/rpma-check-"},
                 {0, EIO, "cannot sync /tmp/rpma-check-"}};
    char path[] = "/tmp/rpma-check-XXXXXX";
    close(STDIN_FILENO); // so that the descriptor of the ledger is 0
    const int fd = mkstemp(path);
    close(fd);
    // An existing file is not overwritten.
    assert_int_equal(text_of_ledger(path).find("cannot create /tmp/rpma-check-"), 0);
    for (const auto &c : cases) {
        unlink(path);
        write_error = c.write_error;
        sync_error = c.sync_error;
        const std::string text = text_of_ledger(path);
        assert_int_equal(text.find(c.begin), 0);
        assert_true(c.begin != wanted || text == wanted);
        struct stat file;
        if (c.begin != wanted) { // no first line: it is not left behind
            assert_int_equal(stat(path, &file), -1);
        } else {
            assert_int_equal(stat(path, &file), 0);
            assert_int_equal(file.st_mode & 0111, 0);
        }
        const int free = dup(STDERR_FILENO); // the descriptor of the closed ledger
        assert_int_equal(free, fd);
        close(free);
    }
    unlink(path);
}

static void record_bytes_follow_the_format(void **) {
    // The record has the byte order of the machine.
    static const uint64_t first[] = {UINT64_C(0xfedcba9876543210),
                                     0x1,
                                     0x12c,
                                     0x12c000,
                                     UINT64_C(0x9878f0a8ca75e979),
                                     UINT64_C(0x4f23c0ef95d10581)},
                          last = UINT64_C(0x87116a8e896a1eee);
    std::array<std::byte, RECORD_SIZE> record{};
    known.write_record(record, 1, 300);
    assert_memory_equal(record.data(), first, sizeof(first));
    assert_memory_equal(record.data() + RECORD_SIZE - sizeof(last), &last, sizeof(last));
}

static void two_records_have_no_equal_word(void **) {
    using Words = std::array<uint64_t, RECORD_SIZE / sizeof(uint64_t)>;
    const auto words_of = [](uint64_t run, uint64_t stream, uint64_t number) {
        std::array<std::byte, RECORD_SIZE> record{};
        Rings{.run = run, .streams = 2, .places = 256}.write_record(record, stream, number);
        Words words;
        std::memcpy(words.data(), record.data(), RECORD_SIZE);
        return words;
    };
    const Words base = words_of(7, 0, 1);
    for (const Words &other : {words_of(6, 0, 1), words_of(7, 1, 1), words_of(7, 0, 257)})
        for (size_t i = 4; i < base.size(); i++)
            assert_int_not_equal(base.at(i), other.at(i));
}

int main() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ledger_lines_follow_the_format),
        cmocka_unit_test(record_bytes_follow_the_format),
        cmocka_unit_test(two_records_have_no_equal_word),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
