// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// sysfs.cc -- what the kernel tells in files

#include <filesystem>
#include <fstream>

#include "info.hh"

std::string read_line(const std::string &path) {
    std::string line;
    std::getline(std::ifstream(path), line);
    return line;
}

uint64_t number_in(const std::string &path) {
    return std::strtoull(read_line(path).c_str(), nullptr, 0);
}

std::string real_path(const std::string &path) {
    std::error_code failed;
    return std::filesystem::canonical(path, failed).string();
}

std::string last_of(const std::string &path) {
    return path.substr(path.rfind('/') + 1);
}

std::vector<std::string> names_in(const std::string &directory) {
    std::vector<std::string> names;
    std::error_code failed;
    for (const auto &entry : std::filesystem::directory_iterator(directory, failed))
        names.push_back(entry.path().filename().string());
    return names;
}
