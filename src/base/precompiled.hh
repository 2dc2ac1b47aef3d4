// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// precompiled.hh -- what most units include from elsewhere and takes longer to parse than they
// do. Units include what they use all the same, which a build with -Db_pch=false shows.

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
