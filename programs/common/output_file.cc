// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// output_file.cc -- a file that is complete, or has its old content

#include "output_file.hh"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <stdexcept>
#include <sys/stat.h>
#include <unistd.h>

static mode_t new_mode() {
    const mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

OutputFile::OutputFile(const std::string &of) : path_(of), fd_(-1) {
    struct stat status {};
    const bool exists = stat(path_.c_str(), &status) == 0;
    if (exists && !S_ISREG(status.st_mode)) {
        fd_ = open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    } else if (!exists || access(path_.c_str(), W_OK) == 0) {
        if (exists) // the file behind a symbolic link is replaced, not the link
            path_ = std::filesystem::canonical(path_).string();
        temporary_ = path_ + ".XXXXXX";
        fd_ = mkostemp(temporary_.data(), O_CLOEXEC);
    }
    if (fd_ < 0)
        fail_to_write();
    if (!temporary_.empty())
        (void)fchmod(fd_, exists ? status.st_mode & 07777 : new_mode());
}

OutputFile::~OutputFile() {
    close(fd_);
    if (!temporary_.empty())
        unlink(temporary_.c_str());
}

void OutputFile::fail_to_write() const {
    throw std::runtime_error("cannot write " + path_ + ": " + strerror(errno));
}

void OutputFile::write(std::string_view text) {
    while (!text.empty()) {
        const ssize_t part = ::write(fd_, text.data(), text.size());
        if (part < 0 && errno != EINTR)
            fail_to_write();
        text.remove_prefix(part < 0 ? 0 : static_cast<size_t>(part));
    }
    if (temporary_.empty())
        return;
    if (fsync(fd_) != 0 || rename(temporary_.c_str(), path_.c_str()) != 0)
        fail_to_write();
    temporary_.clear();
}
