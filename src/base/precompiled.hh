// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// precompiled.hh -- external headers that most units include and that are slow to parse. Each
// unit still includes every header that it uses; a build with -Db_pch=false checks this.

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
