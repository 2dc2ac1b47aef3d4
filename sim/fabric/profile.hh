// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// profile.hh -- what differs between the devices of rpma_devices(7).

#ifndef RPMA_SIM_PROFILE_HH
#define RPMA_SIM_PROFILE_HH 1

#include <infiniband/verbs.h>

#include <cstdint>
#include <span>
#include <string_view>

namespace sim {

enum class Transport { INFINIBAND, ROCE, IWARP };
enum class Rounding { NONE, POWER_OF_TWO, POWER_OF_TWO_LESS_ONE }; // of the sizes of queues
enum class Timeout { AS_ASKED, IGNORED, TCP };

struct DeviceProfile {
    const char *name;   // as in rpma_devices(7), with the transport where it has several
    const char *driver; // below /sys/class/infiniband/*/device/driver
    const char *prefix; // devices are called prefix0, prefix1 ...
    Transport transport;
    ibv_device_attr attr; // all limits; the GUIDs are set for each device
    uint32_t vectors;
    uint32_t max_inline;   // the most that a QP can ask for
    uint32_t least_inline; // that each QP has
    uint32_t max_recv_sge; // attr.max_sge is that of sends
    uint32_t max_read_sge;
    Rounding rounding;
    int full_queue_error; // of ibv_post_send() and ibv_post_recv()
    int inline_error;     // of too much inline data at ibv_post_send()
    int invalid_error;    // of another mistake, and of a QP that is not connected yet
    bool has_srq, has_send_imm, has_write_imm, has_atomics, has_ud;
    bool has_native_flush, has_native_atomic_write, has_odp, has_qp_ex, has_cq_ex,
        has_resize_cq;
    bool fences_writes; // false: a write with a fence does not wait for earlier reads
    bool retry_count_7_is_endless;
    bool destroy_removes_completions; // of a QP from its CQs
    bool reports_access_errors;       // by IBV_EVENT_QP_ACCESS_ERR at the target
    bool receives_need_sge;           // one without is refused
    bool reports_asked_sizes;         // of QPs and SRQs, instead of the actual ones
    Timeout timeout;
};

std::span<const DeviceProfile> profiles();
const DeviceProfile *find_profile(std::string_view name); // NULL: there is none

} // namespace sim

#endif // RPMA_SIM_PROFILE_HH
