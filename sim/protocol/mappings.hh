// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// mappings.hh -- the check whether a process maps a range of memory that it registers.

#pragma once

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <sys/ioctl.h>
#include <unistd.h>

namespace sim {

// struct procmap_query of <linux/fs.h>: Linux 6.11, which many build machines lack.
struct MappingQuery {
    uint64_t size, flags, address, begin, end, mode, page_size, offset, inode;
    uint32_t major, minor, name_size, build_id_size;
    uint64_t name, build_id;
    static constexpr uint64_t READABLE = 1, WRITABLE = 2; // of `mode`
};

// Returns the same as check_mappings(), or ENOTTY if the kernel cannot be asked.
inline int query_mappings(int maps, uint64_t begin, uint64_t end, bool is_written) {
    constexpr unsigned long QUERY = _IOWR('f', 17, MappingQuery);
    MappingQuery query{};
    query.size = sizeof(query);
    for (; begin < end; begin = query.end) {
        query.address = begin;
        if (ioctl(maps, QUERY, &query) != 0)
            return errno == ENOENT ? EFAULT : errno;
        const uint64_t wanted =
            MappingQuery::READABLE | (is_written ? MappingQuery::WRITABLE : 0);
        if ((query.mode & wanted) != wanted)
            return EFAULT;
    }
    return 0;
}

// Returns EFAULT unless the mappings cover the range, which must be writable if the device may
// write: Linux 7.3, drivers/infiniband/core/umem.c, ib_umem_get() and ib_access_writable().
// `maps` is /proc/PID/maps; ESRCH: it is empty, because the process has ended.
inline int check_mappings(int maps, uint64_t begin, uint64_t end, bool is_written) {
    char text[8192];
    size_t kept = 0; // bytes of an incomplete line
    if (const int error = query_mappings(maps, begin, end, is_written); error != ENOTTY)
        return error;
    off_t offset = 0;
    for (ssize_t n; begin < end; offset += n) {
        n = pread(maps, text + kept, sizeof(text) - kept - 1, offset);
        if (n <= 0)
            return n < 0 ? errno : offset == 0 ? ESRCH : EFAULT;
        text[kept + static_cast<size_t>(n)] = '\0';
        char *line = text;
        for (char *next; begin < end && (next = strchr(line, '\n')); line = next + 1) {
            // sscanf() would take a tenth of a short schedule.
            char *mode;
            const unsigned long from = strtoul(line, &mode, 16),
                                to = *mode == '-' ? strtoul(mode + 1, &mode, 16) : 0;
            if (to <= begin || *mode++ != ' ')
                continue;
            if (from > begin || mode[0] != 'r' || (is_written && mode[1] != 'w'))
                return EFAULT;
            begin = to;
        }
        kept = strlen(line);
        memmove(text, line, kept);
    }
    return 0;
}

} // namespace sim
