// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// mappings.hh -- the check whether a process maps a range of memory that it registers.

#pragma once

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

namespace sim {

// Returns EFAULT unless the mappings cover the range, which must be writable if the device may
// write: Linux 7.3, drivers/infiniband/core/umem.c, ib_umem_get() and ib_access_writable().
// `maps` is /proc/PID/maps; ESRCH: it is empty, because the process has ended.
inline int check_mappings(int maps, uint64_t begin, uint64_t end, bool is_written) {
    char text[8192];
    size_t kept = 0; // bytes of an incomplete line
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
