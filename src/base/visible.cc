// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// visible.cc -- untrusted text in log lines

#include "visible.hh" // also built into the programs, without an include path

#include <cstdint>
#include <cstring>

namespace rpma {

namespace {

// The character of a UTF-8 sequence of that length, or 0 if the sequence is not valid.
uint32_t decode(const unsigned char *text, int length) {
    static constexpr uint32_t smallest[] = {0x80, 0x800, 0x10000};
    uint32_t character = text[0] & (0xffu >> (length + 1));
    for (int i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80) // also at the end of the text
            return 0;
        character = character << 6 | (text[i] & 0x3f);
    }
    const bool is_surrogate = character >= 0xd800 && character <= 0xdfff;
    return character < smallest[length - 2] || character > 0x10ffff || is_surrogate ? 0
                                                                                    : character;
}

// The length of the character at text if it can be shown unchanged; 0: escape its first byte.
int shown_length(const unsigned char *text) {
    if (text[0] < 0x80)
        return text[0] >= ' ' && text[0] != 0x7f ? 1 : 0;
    const int length = text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;
    const uint32_t character = text[0] < 0xc0 || text[0] >= 0xf8 ? 0 : decode(text, length);
    const bool is_control = character < 0xa0 || (character >= 0x2028 && character <= 0x202e) ||
                            (character >= 0x2066 && character <= 0x2069);
    return is_control ? 0 : length;
}

// Returns true if all bytes are printable ASCII, as in nearly all messages. Reads 8 bytes at
// once: a byte above 0x7e or below ' ' sets the highest bit of its own in one of the three
// terms.
bool is_printable(const char *text, std::size_t length) {
    constexpr uint64_t ONES = ~uint64_t{0} / 0xff, SPACES = ONES * ' ';
    uint64_t bits = 0, word = SPACES;
    const auto add = [&] { bits |= word | (word + ONES) | (word - SPACES); };
    std::size_t at = 0;
    for (; length - at >= sizeof(word); at += sizeof(word)) {
        std::memcpy(&word, text + at, sizeof(word));
        add();
    }
    word = SPACES;
    std::memcpy(&word, text + at, length - at);
    add();
    return (bits & (ONES << 7)) == 0;
}

// Writes the escape sequence of a byte, without a terminator, and returns its length.
int escape(unsigned char byte, char (&to)[5]) {
    static constexpr char digits[] = "0123456789abcdef", with_letter[] = "\\\n\r\t";
    static constexpr char letters[] = "\\nrt";
    to[0] = '\\';
    if (const char *found = std::strchr(with_letter, byte); found != nullptr) {
        to[1] = letters[found - with_letter];
        return 2;
    }
    to[1] = 'x';
    to[2] = digits[byte >> 4];
    to[3] = digits[byte & 0xf];
    return 4;
}

} // namespace

void make_visible(char *out, std::size_t size, const char *text, bool escapes_backslash) {
    static constexpr char ELLIPSIS[] = "...";
    const std::size_t size_of_text = std::strlen(text) + 1;
    if (size_of_text <= size && is_printable(text, size_of_text - 1) &&
        !(escapes_backslash && std::strchr(text, '\\') != nullptr)) {
        std::memcpy(out, text, size_of_text);
        return;
    }
    std::size_t used = 0, cut = 0; // cut: the position where ELLIPSIS fits
    const auto *at = reinterpret_cast<const unsigned char *>(text);
    while (*at != '\0') {
        char escaped[5];
        const int shown = escapes_backslash && *at == '\\' ? 0 : shown_length(at);
        const int length = shown > 0 ? shown : escape(*at, escaped);
        if (used + static_cast<std::size_t>(length) >= size) {
            std::memcpy(out + cut, ELLIPSIS, sizeof(ELLIPSIS));
            return;
        }
        std::memcpy(out + used, shown > 0 ? reinterpret_cast<const char *>(at) : escaped,
                    static_cast<std::size_t>(length));
        used += static_cast<std::size_t>(length);
        if (used + sizeof(ELLIPSIS) <= size)
            cut = used;
        at += shown > 0 ? shown : 1;
    }
    out[used] = '\0';
}

} // namespace rpma
