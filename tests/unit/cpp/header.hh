// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// header.hh -- one object of each owner of librpma.hpp, over the fakes

#pragma once

#include <array>
#include <cstdlib>
#include <fcntl.h>
#include <functional>
#include <librpma.hpp>

extern "C" {
#include "error_codes.h"
#include "fixture.h"
}

alignas(8) inline std::array<std::byte, FIXTURE_MEMORY_SIZE> memory; // for atomics

inline std::array<std::byte, 21> descriptor_of_remote() {
    std::array<std::byte, 21> bytes;
    fixture_descriptor(reinterpret_cast<unsigned char *>(bytes.data()), FIXTURE_REMOTE_ADDR,
                       FIXTURE_REMOTE_SIZE, FIXTURE_REMOTE_RKEY, FIXTURE_EVERY_USAGE);
    return bytes;
}

inline void nonblocking(int fd) {
    (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

// One of each owner, not connected.
struct objects {
    rpma::peer peer{fake_context(0)};
    rpma::mr_local mr{peer, memory.data(), memory.size(), FIXTURE_EVERY_USAGE};
    rpma::mr_remote remote{descriptor_of_remote()};
    rpma::peer_cfg pcfg;
    rpma::cq_cfg cq_cfg;
    rpma::cq cq{peer, cq_cfg};
    rpma::srq_cfg srq_cfg;
    rpma::srq srq{peer, srq_cfg};
    rpma::ep_cfg ep_cfg;
    rpma::ep ep{peer, FIXTURE_ADDRESS, FIXTURE_PORT, ep_cfg};
    rpma::conn_cfg cfg;
    rpma::conn_req req{peer, FIXTURE_ADDRESS, FIXTURE_PORT, cfg};
    rpma::conn conn =
        rpma::conn_req(peer, FIXTURE_ADDRESS, FIXTURE_PORT, rpma::conn_cfg().set_max_sge(2))
            .connect();
    rpma::batch batch{conn, 4};

    objects() {
        fake_cm_event(conn.get_event_fd(), RDMA_CM_EVENT_ESTABLISHED, nullptr, 0);
        if (conn.next_event() != RPMA_CONN_ESTABLISHED)
            std::abort();
        pcfg.set_direct_write_to_pmem(true);
        conn.apply_remote_peer_cfg(pcfg);
    }
};

inline rpma::error caught(const std::function<void()> &call) {
    try {
        call();
    } catch (const rpma::error &error) {
        return error;
    }
    fail_msg("nothing was thrown");
    std::abort();
}
