// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// format.hh -- the texts of log lines, for a sixth of the instructions of vsnprintf()
//
// A program that posts to a full queue logs a line for each refused post.

#pragma once

#include <concepts>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rpma {

// A number in hexadecimal digits.
struct Hex {
    uint64_t number;
};

// Writes strings and numbers to size bytes, truncated if they do not fit.
class TextWriter {
  public:
    TextWriter(char *to, std::size_t size) : at_(to), last_(to + size - 1) {}

    // Inline, so that the compiler copies a literal without a call.
    template <class... Parts> [[gnu::always_inline]] void add(const Parts &...parts) {
        (put(parts), ...);
    }
    // Adds the terminator, and returns its position.
    char *end() {
        *at_ = '\0';
        return at_;
    }

    void copy(const char *text, std::size_t length);

  private:
    [[gnu::always_inline]] void put(const char *text) {
        const std::size_t length = std::strlen(text);
        if (length > static_cast<std::size_t>(last_ - at_)) [[unlikely]] {
            copy(text, length);
            return;
        }
        std::memcpy(at_, text, length);
        at_ += length;
    }
    void put(Hex hex) { put_digits<16>(hex.number, false); }
    void put(std::integral auto number) {
        const auto bits = static_cast<uint64_t>(number);
        put_digits<10>(number < 0 ? -bits : bits, number < 0);
    }
    template <unsigned BASE> void put_digits(uint64_t number, bool is_negative);

    char *at_;
    const char *const last_; // the position of the terminator of the longest text
};

// Writes a text and its terminator to size bytes, truncated if it does not fit, and returns the
// position of the terminator. The conversions are %s, %d, %u and %x, with l, ll, z or t.
[[gnu::format(printf, 3, 0)]] char *vformat(char *to, std::size_t size, const char *format,
                                            va_list values);

} // namespace rpma
