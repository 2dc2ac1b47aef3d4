// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// mappings.hh -- the mappings of a process

#pragma once

#include "../model/objects.hh"

#include <cerrno>
#include <cinttypes>
#include <climits>
#include <cstdio>
#include <cstring>
#include <string>
#include <sys/sysmacros.h>

namespace sim {

struct Line { // a line of /proc/PID/maps
    uint64_t begin, end, offset, inode;
    dev_t device;
    bool is_shared;
    std::string path;
};

template <class Callback> void for_each_mapping(const std::string &process, Callback callback) {
    char text[PATH_MAX + 128], permissions[8];
    FILE *const maps = fopen(("/proc/" + process + "/maps").c_str(), "re");
    if (maps == nullptr && (errno == ENOENT || errno == ESRCH))
        throw ProgramEnded();
    if (maps == nullptr)
        throw Failure("/proc/" + process + "/maps: " + strerror(errno));
    Line line;
    unsigned major, minor;
    int begin_of_path = 0;
    bool is_empty = true; // as of a zombie
    for (; fgets(text, sizeof(text), maps) != nullptr; is_empty = false)
        if (sscanf(text, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %x:%x %" SCNu64 " %n",
                   &line.begin, &line.end, permissions, &line.offset, &major, &minor,
                   &line.inode, &begin_of_path) == 7) {
            line.device = makedev(major, minor);
            line.path.assign(&text[begin_of_path], strcspn(&text[begin_of_path], "\n"));
            line.is_shared = permissions[3] == 's';
            callback(line);
        }
    fclose(maps);
    if (is_empty)
        throw ProgramEnded();
}

} // namespace sim
