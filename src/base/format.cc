// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// format.cc -- the texts of log lines

#include "base/format.hh"

#include <algorithm>

namespace rpma {

void TextWriter::copy(const char *text, std::size_t length) {
    length = std::min(length, static_cast<std::size_t>(last_ - at_));
    std::memcpy(at_, text, length);
    at_ += length;
}

template <unsigned BASE> void TextWriter::put_digits(uint64_t number, bool is_negative) {
    char digits[sizeof("-18446744073709551615")], *first = digits + sizeof(digits);
    do
        *--first = "0123456789abcdef"[number % BASE];
    while ((number /= BASE) != 0);
    if (is_negative)
        *--first = '-';
    copy(first, static_cast<std::size_t>(digits + sizeof(digits) - first));
}

template void TextWriter::put_digits<10>(uint64_t, bool);
template void TextWriter::put_digits<16>(uint64_t, bool);

char *vformat(char *to, std::size_t size, const char *format, va_list values) {
    TextWriter writer(to, size);
    while (*format != '\0') {
        if (*format != '%') {
            const char *const conversion = strchrnul(format, '%');
            writer.copy(format, static_cast<std::size_t>(conversion - format));
            format = conversion;
            continue;
        }
        if (*++format == 's') {
            const char *text = va_arg(values, const char *);
            writer.add(text != nullptr ? text : "(null)");
            format++;
            continue;
        }
        // long, long long, size_t and ptrdiff_t have 64 bits.
        bool is_long = false;
        for (; *format == 'l' || *format == 'z' || *format == 't'; format++)
            is_long = true;
        const char conversion = *format++;
        if (conversion == 'd')
            writer.add(is_long ? va_arg(values, int64_t) : va_arg(values, int));
        else {
            const uint64_t number =
                is_long ? va_arg(values, uint64_t) : va_arg(values, unsigned);
            if (conversion == 'x')
                writer.add(Hex{number});
            else
                writer.add(number);
        }
    }
    return writer.end();
}

} // namespace rpma
