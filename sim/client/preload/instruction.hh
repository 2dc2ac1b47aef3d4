// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// instruction.hh -- the lengths of instructions of x86-64: Intel 64 and IA-32 Architectures
// Software Developer's Manual, volume 2, chapter 2 and appendix A

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace control {

constexpr size_t MAX_INSTRUCTION = 15; // bytes

// Bytes after the opcode besides those of ModR/M. Z: 4 bytes, or 2 with the prefix 0x66.
enum Immediate : uint8_t { NONE, BYTE, WORD, Z, OFFSET, FULL, ENTER, TEST_BYTE, TEST_Z };

struct Opcode {
    bool has_modrm;
    Immediate immediate;
};

inline Opcode opcode_of_one_byte(unsigned op) {
    constexpr const char *BYTES = "\x6a\x6b\x80\x83\xa8\xc0\xc1\xc6\xcd\xeb",
                         *WORDS = "\xc2\xca", *ZS = "\x68\x69\x81\xa9\xc7";
    const auto is_in = [op](const char *set) {
        return strchr(set, static_cast<int>(op)) != nullptr;
    };
    if (op < 0x40)
        return {(op & 7) < 4, (op & 7) == 4 ? BYTE : (op & 7) == 5 ? Z : NONE};
    const bool has_modrm =
        op == 0x63 || op == 0x69 || op == 0x6b || (op >= 0x80 && op < 0x90) || op == 0xc0 ||
        op == 0xc1 || op == 0xc6 || op == 0xc7 || (op >= 0xd0 && op < 0xd4) ||
        (op >= 0xd8 && op < 0xe0) || op == 0xf6 || op == 0xf7 || op == 0xfe || op == 0xff;
    Immediate immediate = NONE;
    if (is_in(BYTES) || (op >= 0x70 && op < 0x80) || (op >= 0xb0 && op < 0xb8) ||
        (op >= 0xe0 && op < 0xe8))
        immediate = BYTE;
    else if (is_in(WORDS))
        immediate = WORD;
    else if (is_in(ZS))
        immediate = Z;
    else if (op == 0xe8 || op == 0xe9)
        immediate = OFFSET;
    else if ((op >= 0xb8 && op < 0xc0) || (op >= 0xa0 && op < 0xa4))
        immediate = FULL;
    else if (op == 0xc8)
        immediate = ENTER;
    else if (op == 0xf6 || op == 0xf7)
        immediate = op == 0xf6 ? TEST_BYTE : TEST_Z;
    return {has_modrm, immediate};
}

// Opcodes after 0x0f, and those of VEX and EVEX in the same map.
inline Opcode opcode_of_two_bytes(unsigned op) {
    if (op >= 0x80 && op < 0x90)
        return {false, OFFSET};
    const bool has_no_modrm =
        (op >= 0x05 && op < 0x0c) || op == 0x0e || (op >= 0x30 && op < 0x38) || op == 0x77 ||
        (op >= 0xa0 && op < 0xa3) || (op >= 0xa8 && op < 0xab) || (op >= 0xc8 && op < 0xd0);
    const bool has_byte = (op >= 0x70 && op < 0x74) || op == 0xa4 || op == 0xac || op == 0xba ||
                          op == 0xc2 || (op >= 0xc4 && op < 0xc7);
    return {!has_no_modrm, has_byte ? BYTE : NONE};
}

// `map`: 1 is that of 0x0f, 2 that of 0x0f 0x38, 3 that of 0x0f 0x3a.
inline Opcode opcode_of_map(unsigned map, unsigned op) {
    return map == 1 ? opcode_of_two_bytes(op) : Opcode{true, map == 3 ? BYTE : NONE};
}

// The length of the instruction at `code`, of which `size` bytes can be read; 0: they are none.
inline size_t instruction_length(const unsigned char *code, size_t size) {
    unsigned char bytes[MAX_INSTRUCTION + 16] = {};
    memcpy(bytes, code, size < MAX_INSTRUCTION ? size : MAX_INSTRUCTION);
    size_t at = 0;
    bool has_66 = false, has_67 = false, is_wide = false;
    for (; at < MAX_INSTRUCTION &&
           strchr("\x66\x67\xf2\xf3\x2e\x36\x3e\x26\x64\x65\xf0", bytes[at]) && bytes[at] != 0;
         at++) {
        has_66 |= bytes[at] == 0x66;
        has_67 |= bytes[at] == 0x67;
    }
    if ((bytes[at] & 0xf0) == 0x40)
        is_wide = (bytes[at++] & 8) != 0;
    unsigned op = bytes[at++];
    Opcode opcode;
    if (op == 0x0f && (bytes[at] == 0x38 || bytes[at] == 0x3a)) {
        opcode = opcode_of_map(bytes[at] == 0x38 ? 2 : 3, bytes[at + 1]);
        at += 2;
    } else if (op == 0x0f) {
        opcode = opcode_of_map(1, bytes[at++]);
    } else if (op == 0xc5) {
        opcode = opcode_of_map(1, bytes[at + 1]);
        at += 2;
    } else if (op == 0xc4 || op == 0x62) {
        const unsigned map = bytes[at] & (op == 0xc4 ? 0x1f : 7);
        at += op == 0xc4 ? 2 : 3;
        opcode = opcode_of_map(map, bytes[at++]);
    } else {
        opcode = opcode_of_one_byte(op);
    }
    const unsigned modrm = bytes[at], mode = modrm >> 6, base = modrm & 7;
    if (opcode.has_modrm) {
        const bool has_index = mode != 3 && base == 4;
        const unsigned lowest = has_index ? bytes[at + 1] & 7 : base;
        at += 1 + has_index;
        at += mode == 1 ? 1 : mode == 2 || (mode == 0 && lowest == 5) ? 4 : 0;
    }
    const size_t z = has_66 ? 2 : 4;
    const bool is_test = (modrm & 0x38) < 0x10; // the others of this opcode have no immediate
    switch (opcode.immediate) {
    case NONE:
        break;
    case BYTE:
        at += 1;
        break;
    case WORD:
        at += 2;
        break;
    case Z:
        at += z;
        break;
    case OFFSET:
        at += 4;
        break;
    case FULL:
        at += op < 0xb0 ? (has_67 ? 4 : 8) : is_wide ? 8 : z;
        break;
    case ENTER:
        at += 3;
        break;
    case TEST_BYTE:
        at += is_test;
        break;
    case TEST_Z:
        at += is_test ? z : 0;
    }
    return at <= MAX_INSTRUCTION && at <= size ? at : 0;
}

} // namespace control
