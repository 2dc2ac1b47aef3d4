// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// format.cc -- log lines are formatted as by printf(), and show control characters

#include "base/format.hh"
#include "base/visible.hh"

#include <cinttypes>
#include <climits>
#include <cstdio>
#include <cstring>

namespace {

int failed;

// Compares texts of every size: what fits, with its terminator, and not one byte more. write
// returns the end of the text.
template <class Write> void compare(const char *expected, Write write) {
    char text[128];
    const std::size_t whole = std::strlen(expected);
    for (std::size_t size = 1; size <= whole + 2; size++) {
        const std::size_t length = size > whole ? whole : size - 1;
        std::memset(text, '#', sizeof(text));
        const char *end = write(text, size);
        if (end == text + length && std::memcmp(text, expected, length) == 0 &&
            text[length] == '\0' && text[size] == '#')
            continue;
        std::fprintf(stderr, "format: \"%.*s\" in %zu bytes, expected \"%.*s\"\n",
                     static_cast<int>(sizeof(text)), text, size, static_cast<int>(length),
                     expected);
        failed = 1;
    }
}

[[gnu::format(printf, 2, 3)]] void expect(const char *expected, const char *format, ...) {
    va_list values;
    va_start(values, format);
    compare(expected, [&](char *text, std::size_t size) {
        va_list copy;
        va_copy(copy, values);
        const char *end = rpma::vformat(text, size, format, copy);
        va_end(copy);
        return end;
    });
    va_end(values);
}

template <class... Parts> void expect_parts(const char *expected, Parts... parts) {
    compare(expected, [&](char *text, std::size_t size) {
        rpma::TextWriter writer(text, size);
        writer.add(parts...);
        return writer.end();
    });
}

// Expects that a byte is shown like this, wherever it is in a text. Eight bytes are tested at
// once.
void expect_visible(char byte, const char *expected) {
    constexpr char LETTERS[] = "~ letters and digits 0123 ~";
    for (std::size_t at = 0; at < sizeof(LETTERS) - 1; at++) {
        char text[sizeof(LETTERS)], shown[64], wanted[64];
        std::memcpy(text, LETTERS, sizeof(text));
        text[at] = byte;
        std::snprintf(wanted, sizeof(wanted), "%.*s%s%s", static_cast<int>(at), LETTERS,
                      expected, LETTERS + at + 1);
        rpma::make_visible(shown, sizeof(shown), text, false);
        if (std::strcmp(shown, wanted) == 0)
            continue;
        std::fprintf(stderr, "make_visible: \"%s\", expected \"%s\"\n", shown, wanted);
        failed = 1;
    }
}

} // namespace

int main() {
    expect_visible('\n', "\\n");
    expect_visible('\x1b', "\\x1b");
    expect_visible('\x1f', "\\x1f");
    expect_visible('\x7f', "\\x7f");
    expect_visible('\x80', "\\x80");
    expect_visible(' ', " ");
    expect_visible('~', "~");
    expect("", "%s", "");
    expect("no conversion", "no conversion");
    expect("a, b", "%s, %s", "a", "b");
    const char *volatile nothing = nullptr; // compilers refuse a constant
    expect("device (null)", "device %s", nothing);
    expect("0 -1 2147483647 -2147483648", "%d %d %d %d", 0, -1, INT_MAX, INT_MIN);
    expect("9223372036854775807 -9223372036854775808", "%ld %lld", LONG_MAX, LLONG_MIN);
    expect("0 4294967295 18446744073709551615", "%u %" PRIu32 " %zu", 0u, UINT32_MAX, SIZE_MAX);
    expect("0x0 0xffffffff 0x123456789abcdef0", "0x%x 0x%" PRIx32 " 0x%" PRIx64, 0u, UINT32_MAX,
           UINT64_C(0x123456789abcdef0));
    expect("18446744073709551615|-1|x", "%" PRIu64 "|%d|%s", UINT64_MAX, -1, "x");
    // More arguments than registers.
    expect("1 2 3 4 5 6 7 8", "%d %d %d %d %d %d %d %s", 1, 2, 3, 4, 5, 6, 7, "8");
    expect_parts("a, b", "a", ", ", "b");
    expect_parts("-2147483648 0 18446744073709551615", INT_MIN, " ", 0u, " ", UINT64_MAX);
    expect_parts("0xffffffff 0", "0x", rpma::Hex{UINT32_MAX}, " ", rpma::Hex{0});
    return failed;
}
