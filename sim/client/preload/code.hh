// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// code.hh -- finds instructions in the code of a program or a library

#pragma once

#include <cstring>
#include <link.h>

#include "instruction.hh"

namespace control {

constexpr size_t STARTS = 64, ENOUGH = STARTS / 4;

// The bytes of an instruction occur by chance, about once in 64 KiB of code, inside others.
// From most places before an instruction, decoding reaches its begin, because code synchronizes
// with itself. In the libraries of Debian 12, that is from 50 of 64 for each of these
// instructions, and from at most 31 for other bytes.
inline bool is_instruction(const unsigned char *code, const unsigned char *at,
                           const unsigned char *end) {
    size_t reached = 0;
    for (size_t before = 1; before <= STARTS && before <= static_cast<size_t>(at - code);
         before++) {
        const unsigned char *from = at - before;
        size_t length = 1;
        while (from < at && length != 0) {
            length = instruction_length(from, static_cast<size_t>(end - from));
            from += length;
        }
        reached += from == at;
    }
    return reached >= ENOUGH || at - code < static_cast<ptrdiff_t>(STARTS);
}

// Calls the function for the places of an instruction, until it returns false.
template <size_t SIZE, class Function>
void find_instructions(const dl_phdr_info &info, const unsigned char (&bytes)[SIZE],
                       Function function) {
    for (unsigned i = 0; i < info.dlpi_phnum; i++) {
        const ElfW(Phdr) &segment = info.dlpi_phdr[i];
        if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0)
            continue;
        const auto *const code =
            reinterpret_cast<const unsigned char *>(info.dlpi_addr + segment.p_vaddr);
        const auto *const end = code + segment.p_filesz;
        for (const unsigned char *at = code;
             (at = static_cast<const unsigned char *>(
                  memmem(at, static_cast<size_t>(end - at), bytes, SIZE))) != nullptr;
             at++)
            if (is_instruction(code, at, end) && !function(at))
                return;
    }
}

template <size_t SIZE>
bool contains_instruction(const dl_phdr_info &info, const unsigned char (&bytes)[SIZE]) {
    bool is_found = false;
    find_instructions(info, bytes, [&](const unsigned char *) {
        is_found = true;
        return false;
    });
    return is_found;
}

} // namespace control
