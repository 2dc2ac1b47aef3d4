// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// mapping.cc -- the source or target memory of transfers: DRAM, a file or a device DAX

#include "mapping.hh"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <fstream>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

template <class... Values>
[[noreturn]] static void fail_to_map(fmt::format_string<Values...> format, Values &&...values) {
    throw std::runtime_error(fmt::format(format, std::forward<Values>(values)...));
}

Mapping &Mapping::operator=(Mapping &&other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(kind_, other.kind_);
    std::swap(is_persistent_, other.is_persistent_);
    return *this;
}

Mapping::~Mapping() {
    if (data())
        munmap(data(), size());
}

static char *map_bytes(size_t size, int protection, int flags, int fd) {
    void *place = mmap(nullptr, size, protection, flags, fd, 0);
    return place == MAP_FAILED ? nullptr : static_cast<char *>(place);
}

Mapping Mapping::allocate(size_t size) {
    Mapping memory;
    char *place =
        map_bytes(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1);
    if (!place)
        fail_to_map("cannot allocate {} bytes: {}", size, strerror(errno));
    memory.bytes_ = {place, size};
    return memory;
}

// Only sysfs reports the size of a device DAX. Returns 0 for any other device.
static size_t device_size(const struct stat &status) {
    size_t size = 0;
    std::ifstream(fmt::format("/sys/dev/char/{}:{}/size", major(status.st_rdev),
                              minor(status.st_rdev))) >>
        size;
    return size;
}

Mapping Mapping::map(const std::string &path, int protection) {
    struct Descriptor {
        int fd;
        ~Descriptor() { close(fd); }
    };
    const int mode = (protection & PROT_WRITE ? O_RDWR : O_RDONLY) | O_CLOEXEC;
    const Descriptor file{open(path.c_str(), mode)};
    struct stat status {};
    if (file.fd < 0 || fstat(file.fd, &status) != 0)
        fail_to_map("{}: {}", path, strerror(errno));
    const size_t dax_size = S_ISCHR(status.st_mode) ? device_size(status) : 0;
    const bool is_device = dax_size > 0;
    if (!is_device && !S_ISREG(status.st_mode))
        fail_to_map("{} is neither a file nor a device DAX", path);
    const size_t size = is_device ? dax_size : static_cast<size_t>(status.st_size);
    if (!size)
        fail_to_map("{} is empty: its size is the usable size", path);
    Mapping memory;
    // Only FS-DAX supports MAP_SYNC; other file systems map the page cache.
    char *place = is_device
                      ? nullptr
                      : map_bytes(size, protection, MAP_SHARED_VALIDATE | MAP_SYNC, file.fd);
    memory.is_persistent_ = place || is_device;
    memory.kind_ = is_device ? "devdax" : place ? "fsdax" : "file";
    if (!place && !(place = map_bytes(size, protection, MAP_SHARED, file.fd)))
        fail_to_map("cannot map {}: {}", path, strerror(errno));
    memory.bytes_ = {place, size};
    return memory;
}
