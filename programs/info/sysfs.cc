// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// sysfs.cc -- reads files of the kernel

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <unistd.h>

#include "info.hh"

std::vector<std::string> read_lines(const std::string &path) {
    std::ifstream file(kernel_root() + path);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);)
        lines.push_back(line);
    return lines;
}

std::string read_line(const std::string &path) {
    std::string line;
    std::getline(std::ifstream(kernel_root() + path), line);
    return line;
}

int access_error(const std::string &path, int mode) {
    return access((kernel_root() + path).c_str(), mode) == 0 ? 0 : errno;
}

uint64_t read_number(const std::string &path) {
    return std::strtoull(read_line(path).c_str(), nullptr, 0);
}

std::string real_path(const std::string &path) {
    std::error_code failed;
    const std::string found = std::filesystem::canonical(kernel_root() + path, failed).string();
    return failed ? "" : found.substr(kernel_root().size());
}

std::string base_name(const std::string &path) {
    return path.substr(path.rfind('/') + 1);
}

std::vector<std::string> list_directory(const std::string &directory) {
    std::vector<std::string> names;
    std::error_code failed;
    for (const auto &entry :
         std::filesystem::directory_iterator(kernel_root() + directory, failed))
        names.push_back(entry.path().filename().string());
    return names;
}
