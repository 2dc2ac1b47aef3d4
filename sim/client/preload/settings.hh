// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// settings.hh -- the environment that rdma-sim has given to the program

#pragma once

struct Settings {
    unsigned host; // on which this process runs; 0: it is not in a fabric
    // Empty if the program has no such variable.
    const char *root;       // directory of the files of its host
    const char *socket;     // of rdma-sim
    const char *listening;  // the file whose creation shows that the program listens
    const char *persistent; // absolute paths of --pmem, each with "//" at its end
    unsigned loopback;      // network of the run
};

// Reads the environment at the first call, because constructors of other libraries may run
// before that of this one.
const Settings &settings();
