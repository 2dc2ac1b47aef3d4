// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

#include "executable.hh"

#include <cstdio>
#include <cstring>
#include <elf.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

// The header of this program or library, which the linker defines.
extern "C" const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

namespace sim {

namespace {

bool read_at(int fd, void *to, size_t length, ElfW(Off) offset) {
    return pread(fd, to, length, static_cast<off_t>(offset)) == static_cast<ssize_t>(length);
}

// The dynamic linker of this process. The first object is the program, also if the linker
// itself was executed with the program as its argument.
int find_linker(dl_phdr_info *object, size_t, void *found) {
    for (unsigned i = 0; i < object->dlpi_phnum; i++)
        if (const ElfW(Phdr) &segment = object->dlpi_phdr[i]; segment.p_type == PT_INTERP)
            *static_cast<const char **>(found) =
                reinterpret_cast<const char *>(object->dlpi_addr + segment.p_vaddr);
    return 1;
}

bool is_same_file(const struct stat &status, const char *path) {
    struct stat other;
    return stat(path, &other) == 0 && other.st_dev == status.st_dev &&
           other.st_ino == status.st_ino;
}

// These start a program with the fabric's libraries, or use none that it replaces.
bool is_static_helper(int fd, const struct stat &status, const char *linker) {
    char link[64], path[PATH_MAX], core[PATH_MAX + 64];
    if (is_same_file(status, linker))
        return true;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(link, path, sizeof(path) - 1);
    path[length < 0 ? 0 : length] = '\0';
    char *const slash = strrchr(path, '/');
    if (slash == nullptr)
        return false;
    // libc-bin's; Python executes it in ctypes.util.find_library().
    if (strcmp(slash, "/ldconfig") == 0 || strcmp(slash, "/ldconfig.real") == 0)
        return true;
    // A tool of valgrind, such as memcheck-amd64-linux: its platform is in the name of the
    // library that the tool preloads.
    const char *const platform = strchr(slash, '-');
    if (platform == nullptr)
        return false;
    snprintf(core, sizeof(core), "%.*s/vgpreload_core%s.so", static_cast<int>(slash - path),
             path, platform);
    return access(core, F_OK) == 0;
}

const char *find_problem(int fd, const ElfW(Ehdr) & header, const char *interpreter) {
    struct stat status;
    const char *linker = "";
    if (fstat(fd, &status) != 0)
        return nullptr;
    dl_iterate_phdr(find_linker, &linker);
    if ((status.st_mode & (S_ISUID | S_ISGID)) != 0 ||
        fgetxattr(fd, "security.capability", nullptr, 0) > 0)
        return "has the rights of another user (setuid, setgid or capabilities), so that the "
               "dynamic linker ignores the fabric's libraries: run a copy without them";
    if (header.e_ident[EI_CLASS] != __ehdr_start.e_ident[EI_CLASS] ||
        header.e_ident[EI_DATA] != __ehdr_start.e_ident[EI_DATA] ||
        header.e_machine != __ehdr_start.e_machine)
        return "built for another architecture: use a program for this one";
    if (*interpreter == '\0')
        return is_static_helper(fd, status, linker)
                   ? nullptr
                   : "linked statically, so that it loads no libibverbs: link it dynamically";
    struct stat other;
    if (strcmp(interpreter, linker) != 0 &&
        (stat(interpreter, &other) != 0 || !is_same_file(other, linker)))
        return "built for another C library: use a program for that of rdma-sim";
    return nullptr;
}

} // namespace

void read_executable(int fd, Executable &executable) {
    ElfW(Ehdr) header = {};
    char line[256] = "";
    executable = {};
    executable.is_elf =
        read_at(fd, &header, sizeof(header), 0) && memcmp(header.e_ident, ELFMAG, SELFMAG) == 0;
    if (!executable.is_elf) {
        if (pread(fd, line, sizeof(line) - 1, 0) > 2 && line[0] == '#' && line[1] == '!')
            (void)sscanf(line + 2, "%255s", executable.interpreter);
        return;
    }
    for (unsigned i = 0; i < header.e_phnum; i++) {
        ElfW(Phdr) segment;
        if (!read_at(fd, &segment, sizeof(segment), header.e_phoff + i * sizeof(segment)))
            break;
        if (segment.p_type == PT_INTERP && segment.p_filesz < sizeof(executable.interpreter) &&
            !read_at(fd, executable.interpreter, segment.p_filesz, segment.p_offset))
            executable.interpreter[0] = '\0';
    }
    executable.problem = find_problem(fd, header, executable.interpreter);
}

} // namespace sim
