// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// streams.cc -- for "rdma-sim explore": streams of stdio over sockets, pipes and random
// devices, and sendfile(): the C library or the kernel would not call read() and write()

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "control.hh"

namespace {

using namespace control;

__thread bool is_writing; // the calling thread holds the lock of the stream

int fd_of(void *stream) {
    return static_cast<int>(reinterpret_cast<intptr_t>(stream));
}
ssize_t read_stream(void *stream, char *to, size_t size) {
    return read(fd_of(stream), to, size);
}
ssize_t write_stream(void *stream, const char *from, size_t size) {
    is_writing = true;
    const ssize_t written = write(fd_of(stream), from, size);
    is_writing = false;
    return written < 0 ? 0 : written; // fopencookie(3)
}
int close_stream(void *stream) {
    return close(fd_of(stream));
}

bool is_replaced(int fd) {
    return is_of_program(fd) && (is_shared(fd) || is_random(fd));
}

// Returns the stream, or one that reads the same file.
FILE *opened(FILE *file, const char *mode) {
    if (file == nullptr || !is_replaced(fileno(file)))
        return file;
    const int flags = fcntl(fileno(file), F_GETFD);
    const int fd =
        fcntl(fileno(file), (flags & FD_CLOEXEC) != 0 ? F_DUPFD_CLOEXEC : F_DUPFD, 0);
    fclose(file);
    return fd < 0 ? nullptr : open_stream(fd, mode);
}

} // namespace

bool control::keeps_stream() {
    return is_writing;
}

FILE *control::open_stream(int fd, const char *mode) {
    FILE *const file = fopencookie(reinterpret_cast<void *>(intptr_t{fd}), mode,
                                   {read_stream, write_stream, nullptr, close_stream});
    if (file != nullptr)
        file->_fileno = fd; // for fileno()
    return file;
}

void control::replace_standard_streams() {
    if (is_replaced(STDIN_FILENO))
        stdin = open_stream(STDIN_FILENO, "r");
    if (is_replaced(STDOUT_FILENO))
        setvbuf(stdout = open_stream(STDOUT_FILENO, "w"), nullptr, _IOLBF, BUFSIZ);
}

EXPORTED FILE *fdopen(int fd, const char *mode) noexcept {
    return is_replaced(fd) ? open_stream(fd, mode) : REAL(fdopen)(fd, mode);
}
EXPORTED FILE *fopen(const char *path, const char *mode) {
    return opened(REAL(fopen)(path, mode), mode);
}
EXPORTED FILE *fopen64(const char *path, const char *mode) {
    return opened(REAL(fopen64)(path, mode), mode);
}

extern "C" {
int __dprintf_chk(int, int, const char *, ...) __attribute__((format(printf, 3, 4)));
int __vdprintf_chk(int, int, const char *, va_list) __attribute__((format(printf, 3, 0)));
}

EXPORTED int vdprintf(int fd, const char *format, va_list values) {
    char *text;
    if (!is_replaced(fd))
        return REAL(vdprintf)(fd, format, values);
    const int size = vasprintf(&text, format, values);
    if (size < 0)
        return -1;
    const ssize_t written = write(fd, text, static_cast<size_t>(size));
    const int error = errno;
    free(text);
    errno = error;
    return written == size ? size : -1;
}
EXPORTED int __vdprintf_chk(int fd, int, const char *format, va_list values) {
    return vdprintf(fd, format, values);
}
// Fortified programs call the second one.
#define PRINT(name, parameters)                          \
    EXPORTED int name parameters {                       \
        va_list values;                                  \
        va_start(values, format);                        \
        const int result = vdprintf(fd, format, values); \
        va_end(values);                                  \
        return result;                                   \
    }
PRINT(dprintf, (int fd, const char *format, ...))
PRINT(__dprintf_chk, (int fd, int, const char *format, ...))

// The kernel would send without write().
EXPORTED ssize_t sendfile(int fd, int from, off_t *offset, size_t count) noexcept {
    if (!is_of_program(fd) || !is_shared(fd))
        return REAL(sendfile)(fd, from, offset, count);
    off_t at = offset == nullptr ? lseek(from, 0, SEEK_CUR) : *offset;
    size_t done = 0;
    while (done < count) {
        char data[65536];
        const ssize_t size = pread(from, data, std::min(count - done, sizeof(data)), at);
        const ssize_t sent = size <= 0 ? size : write(fd, data, static_cast<size_t>(size));
        if (sent < 0 && done == 0)
            return -1;
        if (sent <= 0)
            break;
        at += sent;
        done += static_cast<size_t>(sent);
    }
    if (offset != nullptr)
        *offset = at;
    else
        lseek(from, at, SEEK_SET);
    return static_cast<ssize_t>(done);
}
EXPORTED ssize_t sendfile64(int fd, int from, off64_t *offset, size_t count) noexcept {
    return sendfile(fd, from, offset, count);
}
