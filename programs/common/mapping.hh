// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// mapping.hh -- the source or target memory of transfers: DRAM, a file or a device DAX

#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

// Owns a mapping. The constructing functions throw std::runtime_error.
class Mapping {
  public:
    Mapping() = default;
    Mapping(Mapping &&other) noexcept { *this = std::move(other); }
    Mapping &operator=(Mapping &&other) noexcept;
    ~Mapping();

    // Zeroed DRAM.
    static Mapping allocate(size_t size);
    // All of a file or of a device DAX, for PROT_READ alone or with PROT_WRITE.
    static Mapping map(const std::string &path, int protection);

    char *data() const { return bytes_.data(); }
    size_t size() const { return bytes_.size(); }
    std::span<char> first(size_t count) const { return bytes_.first(count); }
    const char *kind() const { return kind_; } // "dram", "file", "fsdax" or "devdax"
    bool is_persistent() const { return is_persistent_; }

  private:
    std::span<char> bytes_;
    const char *kind_ = "dram";
    bool is_persistent_ = false;
};
