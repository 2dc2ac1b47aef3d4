// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// format.cc -- the texts of log lines

#include "base/format.hh"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace rpma {

namespace {

// A buffer that is filled from its start.
struct Buffer {
    char *at;
    const char *const last; // the position of the terminator of the longest text

    Buffer(char *to, std::size_t size) : at(to), last(to + size - 1) {}

    void add(const char *text, std::size_t length) {
        length = std::min(length, static_cast<std::size_t>(last - at));
        std::memcpy(at, text, length);
        at += length;
    }

    template <unsigned BASE> void add_number(uint64_t number, bool is_negative) {
        char digits[sizeof("-18446744073709551615")], *first = digits + sizeof(digits);
        do
            *--first = "0123456789abcdef"[number % BASE];
        while ((number /= BASE) != 0);
        if (is_negative)
            *--first = '-';
        add(first, static_cast<std::size_t>(digits + sizeof(digits) - first));
    }
};

} // namespace

char *vformat(char *to, std::size_t size, const char *format, va_list values) {
    Buffer buffer(to, size);
    while (*format != '\0') {
        const char *conversion = strchrnul(format, '%');
        buffer.add(format, static_cast<std::size_t>(conversion - format));
        if (*conversion == '\0')
            break;
        // long, long long, size_t and ptrdiff_t have 64 bits.
        bool is_long = false;
        while (*++conversion == 'l' || *conversion == 'z' || *conversion == 't')
            is_long = true;
        format = conversion + 1;
        if (*conversion == 's') {
            const char *given = va_arg(values, const char *);
            const char *text = given != nullptr ? given : "(null)";
            buffer.add(text, std::strlen(text));
            continue;
        }
        const uint64_t number = is_long ? va_arg(values, uint64_t) : va_arg(values, unsigned);
        const bool is_negative = *conversion == 'd' && number >> (is_long ? 63 : 31) != 0;
        if (*conversion == 'x')
            buffer.add_number<16>(number, false);
        else if (is_negative)
            buffer.add_number<10>(is_long ? -number : static_cast<uint32_t>(-number), true);
        else
            buffer.add_number<10>(number, false);
    }
    *buffer.at = '\0';
    return buffer.at;
}

char *format(char *to, std::size_t size, const char *format, ...) {
    va_list values;
    va_start(values, format);
    char *terminator = vformat(to, size, format, values);
    va_end(values);
    return terminator;
}

} // namespace rpma
