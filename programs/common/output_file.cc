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

OutputFile::OutputFile(const std::string &of) : path(of), fd(-1) {
    struct stat status {};
    const bool exists = stat(path.c_str(), &status) == 0;
    if (exists && !S_ISREG(status.st_mode)) {
        fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    } else if (!exists || access(path.c_str(), W_OK) == 0) {
        if (exists) // the file behind a symbolic link is replaced, not the link
            path = std::filesystem::canonical(path).string();
        temporary = path + ".XXXXXX";
        fd = mkostemp(temporary.data(), O_CLOEXEC);
    }
    if (fd < 0)
        fail_to_write();
    if (!temporary.empty())
        (void)fchmod(fd, exists ? status.st_mode & 07777 : new_mode());
}

OutputFile::~OutputFile() {
    close(fd);
    if (!temporary.empty())
        unlink(temporary.c_str());
}

void OutputFile::fail_to_write() const {
    throw std::runtime_error("cannot write " + path + ": " + strerror(errno));
}

void OutputFile::write(std::string_view text) {
    while (!text.empty()) {
        const ssize_t part = ::write(fd, text.data(), text.size());
        if (part < 0 && errno != EINTR)
            fail_to_write();
        text.remove_prefix(part < 0 ? 0 : static_cast<size_t>(part));
    }
    if (temporary.empty())
        return;
    if (fsync(fd) != 0 || rename(temporary.c_str(), path.c_str()) != 0)
        fail_to_write();
    temporary.clear();
}
