// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// files.cc -- redirects the kernel's files about RDMA devices to the tree that rdma-sim creates
// for a host

#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "preload.hh"
#include "system.hh"

namespace {

const char *root() {
    return settings().root;
}

// Links of the classes lead to the devices, which programs also name themselves.
constexpr const char *PREFIXES[] = {
    "/sys/class/infiniband",     "/sys/class/infiniband_verbs",
    "/sys/class/infiniband_mad", "/sys/class/net",
    "/sys/devices/sim0",         "/sys/devices/virtual/net",
    "/dev/infiniband",           "/proc/net/dev",
    "/proc/net/if_inet6",        "/proc/net/route",
};

bool is_replaced(const char *path) {
    for (const char *const prefix : PREFIXES) {
        const size_t length = strlen(prefix);
        if (strncmp(path, prefix, length) == 0 && (path[length] == '/' || path[length] == '\0'))
            return true;
    }
    return false;
}

// The path in the tree of the host, or the unchanged path of another file.
class Path {
  public:
    explicit Path(const char *path) : text_(path) {
        // glibc declares most paths as not NULL, so that compilers remove the check; Rust
        // passes NULL to statx().
        asm("" : "+r"(path));
        if (path != nullptr && root()[0] != '\0' && is_replaced(path)) {
            snprintf(buffer_, sizeof(buffer_), "%s%s", root(), path);
            text_ = buffer_;
        }
    }
    operator const char *() const { return text_; }

  private:
    const char *text_;
    char buffer_[PATH_MAX];
};

// directory.cc creates a character device as a regular file with these permissions, whose size
// is the number of the device.
template <class Mode> bool is_device(Mode mode) {
    return root()[0] != '\0' && S_ISREG(mode) && (mode & 07777) == 01666;
}

// It creates a counter with these.
template <class Mode> bool is_counter(Mode mode) {
    return root()[0] != '\0' && S_ISREG(mode) && (mode & 07777) == 01444;
}
constexpr int COUNTER_SIZE = 4096; // of all files in sysfs

template <class Stat> int as_kernel_file(int result, Stat *to) {
    if (result == 0 && is_device(to->st_mode)) {
        to->st_mode = S_IFCHR | 0666;
        to->st_rdev = static_cast<dev_t>(to->st_size);
        to->st_size = to->st_blocks = 0;
    } else if (result == 0 && is_counter(to->st_mode)) {
        to->st_mode = S_IFREG | 0444;
        to->st_size = COUNTER_SIZE;
    }
    return result;
}

int as_kernel_file(int result, struct statx *to) {
    if (result == 0 && is_device(to->stx_mode)) {
        to->stx_mode = S_IFCHR | 0666;
        to->stx_rdev_major = major(to->stx_size);
        to->stx_rdev_minor = minor(to->stx_size);
        to->stx_size = to->stx_blocks = 0;
    } else if (result == 0 && is_counter(to->stx_mode)) {
        to->stx_mode = S_IFREG | 0444;
        to->stx_size = COUNTER_SIZE;
    }
    return result;
}

// ---- counters ------------------------------------------------------------------------------

// Returns an error number. `path`: ROOT/sys/devices/simN/.../GROUP/NAME
int read_counter(const char *path, uint64_t &value) {
    sim::ReadCounter request = {};
    const char *const device = strstr(path, "/sys/devices/sim");
    const char *const name = strrchr(path, '/');
    const char *const group =
        static_cast<const char *>(memrchr(path, '/', static_cast<size_t>(name - path)));
    if (device == nullptr || group == nullptr)
        return ENODEV;
    request.host = settings().host;
    request.device = static_cast<uint32_t>(atoi(device + strlen("/sys/devices/sim")));
    snprintf(request.group, sizeof(request.group), "%.*s", static_cast<int>(name - group - 1),
             group + 1);
    snprintf(request.name, sizeof(request.name), "%s", name + 1);
    size_t length = sizeof(value);
    return ask_system(&request, sizeof(request), nullptr, 0, &value, length);
}

// Replaces an opened counter by a file with its value. Returns an error number.
int fill_counter(int fd) {
    struct stat status;
    char link[64], path[PATH_MAX], text[32];
    if (fd < 0 || root()[0] == '\0' || REAL(fstat)(fd, &status) != 0 ||
        !is_counter(status.st_mode))
        return 0;
    const int flags = fcntl(fd, F_GETFL);
    if ((flags & O_PATH) != 0)
        return 0;
    if ((flags & O_ACCMODE) != O_RDONLY)
        return EACCES;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    const ssize_t length = REAL(readlink)(link, path, sizeof(path) - 1);
    if (length <= 0)
        return ENODEV;
    path[length] = '\0';
    uint64_t value = 0;
    if (const int error = read_counter(path, value); error != 0)
        return error;
    const int size =
        snprintf(text, sizeof(text), "%llu\n", static_cast<unsigned long long>(value));
    const int made = memfd_create("counter", MFD_CLOEXEC);
    const bool is_made = made >= 0 && write(made, text, static_cast<size_t>(size)) == size &&
                         lseek(made, 0, SEEK_SET) == 0 && fchmod(made, 01444) == 0 &&
                         dup3(made, fd, fcntl(fd, F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0) == fd;
    const int error = is_made ? 0 : errno;
    if (made >= 0)
        close(made);
    return error;
}

int opened(int fd) {
    const int before = errno;
    const int error = fill_counter(fd);
    if (error != 0)
        close(fd);
    errno = error != 0 ? error : before;
    return error != 0 ? -1 : fd;
}

FILE *opened(FILE *file) {
    const int before = errno;
    const int error = file != nullptr ? fill_counter(fileno(file)) : 0;
    if (error != 0)
        fclose(file);
    errno = error != 0 ? error : before;
    return error != 0 ? nullptr : file;
}

mode_t mode_of(int flags, va_list arguments) {
    return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

} // namespace

extern "C" {
// Called by fortified programs and by programs that were linked against glibc before 2.33.
int __open_2(const char *, int);
int __open64_2(const char *, int);
int __openat_2(int, const char *, int);
int __openat64_2(int, const char *, int);
ssize_t __readlink_chk(const char *, char *, size_t, size_t);
char *__realpath_chk(const char *, char *, size_t);
int __xstat(int, const char *, struct stat *);
int __lxstat(int, const char *, struct stat *);
int __xstat64(int, const char *, struct stat64 *);
int __lxstat64(int, const char *, struct stat64 *);
int __fxstat(int, int, struct stat *);
int __fxstat64(int, int, struct stat64 *);
int __fxstatat(int, int, const char *, struct stat *, int);
int __fxstatat64(int, int, const char *, struct stat64 *, int);
}

// Defines a function by its type, name and parameters, and the arguments of the real function.
#define REPLACE(type, name, parameters, ...) \
    EXPORTED type name parameters {          \
        return REAL(name)(__VA_ARGS__);      \
    }
#define REPLACE_OPENED(type, name, parameters, ...) \
    EXPORTED type name parameters {                 \
        return opened(REAL(name)(__VA_ARGS__));     \
    }
#define REPLACE_STAT(name, parameters, ...)                 \
    EXPORTED int name parameters {                          \
        return as_kernel_file(REAL(name)(__VA_ARGS__), to); \
    }
#define REPLACE_OPEN(name, parameters, ...)            \
    EXPORTED int name parameters {                     \
        va_list arguments;                             \
        va_start(arguments, flags);                    \
        const mode_t mode = mode_of(flags, arguments); \
        va_end(arguments);                             \
        return opened(REAL(name)(__VA_ARGS__, mode));  \
    }

REPLACE_OPEN(open, (const char *path, int flags, ...), Path(path), flags)
REPLACE_OPEN(open64, (const char *path, int flags, ...), Path(path), flags)
REPLACE_OPEN(openat, (int at, const char *path, int flags, ...), at, Path(path), flags)
REPLACE_OPEN(openat64, (int at, const char *path, int flags, ...), at, Path(path), flags)
REPLACE_OPENED(int, __open_2, (const char *path, int flags), Path(path), flags)
REPLACE_OPENED(int, __open64_2, (const char *path, int flags), Path(path), flags)
REPLACE_OPENED(int, __openat_2, (int at, const char *path, int flags), at, Path(path), flags)
REPLACE_OPENED(int, __openat64_2, (int at, const char *path, int flags), at, Path(path), flags)
REPLACE_OPENED(FILE *, fopen, (const char *path, const char *mode), Path(path), mode)
REPLACE_OPENED(FILE *, fopen64, (const char *path, const char *mode), Path(path), mode)
REPLACE(DIR *, opendir, (const char *path), Path(path))
REPLACE(int, scandir,
        (const char *path, dirent ***list, int (*filter)(const dirent *),
         int (*compare)(const dirent **, const dirent **)),
        Path(path), list, filter, compare)
REPLACE(int, scandir64,
        (const char *path, dirent64 ***list, int (*filter)(const dirent64 *),
         int (*compare)(const dirent64 **, const dirent64 **)),
        Path(path), list, filter, compare)
REPLACE(int, chdir, (const char *path) noexcept, Path(path))
REPLACE(int, access, (const char *path, int mode) noexcept, Path(path), mode)
REPLACE(int, euidaccess, (const char *path, int mode) noexcept, Path(path), mode)
REPLACE(int, faccessat, (int at, const char *path, int mode, int flags) noexcept, at,
        Path(path), mode, flags)
REPLACE(ssize_t, readlink, (const char *path, char *to, size_t size) noexcept, Path(path), to,
        size)
REPLACE(ssize_t, readlinkat, (int at, const char *path, char *to, size_t size) noexcept, at,
        Path(path), to, size)
REPLACE(ssize_t, __readlink_chk, (const char *path, char *to, size_t size, size_t room),
        Path(path), to, size, room)
REPLACE(char *, realpath, (const char *path, char *to) noexcept, Path(path), to)
REPLACE(char *, __realpath_chk, (const char *path, char *to, size_t room), Path(path), to, room)
REPLACE(char *, canonicalize_file_name, (const char *path) noexcept, Path(path))
REPLACE_STAT(stat, (const char *path, struct stat *to) noexcept, Path(path), to)
REPLACE_STAT(lstat, (const char *path, struct stat *to) noexcept, Path(path), to)
REPLACE_STAT(stat64, (const char *path, struct stat64 *to) noexcept, Path(path), to)
REPLACE_STAT(lstat64, (const char *path, struct stat64 *to) noexcept, Path(path), to)
REPLACE_STAT(fstatat, (int at, const char *path, struct stat *to, int flags) noexcept, at,
             Path(path), to, flags)
REPLACE_STAT(fstatat64, (int at, const char *path, struct stat64 *to, int flags) noexcept, at,
             Path(path), to, flags)
REPLACE_STAT(statx,
             (int at, const char *path, int flags, unsigned mask, struct statx *to) noexcept,
             at, Path(path), flags, mask, to)
REPLACE(ssize_t, getxattr, (const char *path, const char *name, void *to, size_t size) noexcept,
        Path(path), name, to, size)
REPLACE(ssize_t, lgetxattr,
        (const char *path, const char *name, void *to, size_t size) noexcept, Path(path), name,
        to, size)
REPLACE(ssize_t, listxattr, (const char *path, char *to, size_t size) noexcept, Path(path), to,
        size)
REPLACE(ssize_t, llistxattr, (const char *path, char *to, size_t size) noexcept, Path(path), to,
        size)
REPLACE_STAT(__xstat, (int version, const char *path, struct stat *to), version, Path(path), to)
REPLACE_STAT(__lxstat, (int version, const char *path, struct stat *to), version, Path(path),
             to)
REPLACE_STAT(__xstat64, (int version, const char *path, struct stat64 *to), version, Path(path),
             to)
REPLACE_STAT(__lxstat64, (int version, const char *path, struct stat64 *to), version,
             Path(path), to)
REPLACE_STAT(__fxstatat, (int version, int at, const char *path, struct stat *to, int flags),
             version, at, Path(path), to, flags)
REPLACE_STAT(__fxstatat64,
             (int version, int at, const char *path, struct stat64 *to, int flags), version, at,
             Path(path), to, flags)
REPLACE_STAT(fstat, (int fd, struct stat *to) noexcept, fd, to)
REPLACE_STAT(fstat64, (int fd, struct stat64 *to) noexcept, fd, to)
REPLACE_STAT(__fxstat, (int version, int fd, struct stat *to), version, fd, to)
REPLACE_STAT(__fxstat64, (int version, int fd, struct stat64 *to), version, fd, to)
