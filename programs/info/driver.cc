// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// driver.cc -- the name of a driver in rpma_devices(7), and the traps that the page explains

#include <algorithm>
#include <iterator>

#include "info.hh"

namespace {

constexpr char NO_RC[] = "There are no reliable connections: librpma cannot use it.";
constexpr char NO_FENCE[] =
    "Writes are not fenced: wait for the completion of a flush before rpma_atomic_write().";
constexpr char NO_INLINE[] = "Inline data is not supported, and no error reports this: "
                             "rpma_atomic_write() and RPMA_F_INLINE do "
                             "not work, use rpma_write_atomic().";
constexpr char NO_TIMEOUT[] =
    "The device ignores rpma_conn_cfg_set_ack_timeout(): use a timer of the program.";
constexpr char NO_SRQ[] =
    "There is no shared receive queue: post receives for each connection.";
constexpr char NO_SEND_IMM[] = "Messages have no immediate data.";
constexpr char NO_WRITE_IMM[] = "Writes have no immediate data.";
constexpr char OWN_TIMEOUT[] =
    "The firmware may use other timeouts than rpma_conn_cfg_set_ack_timeout() sets.";
constexpr char LIMITED_TIMEOUT[] =
    "HIP08 ignores an rpma_conn_cfg_set_ack_timeout() above 4.3 seconds.";
constexpr char ENDLESS_RETRIES[] =
    "A retry count of 7, the default of rpma_conn_cfg_set_retry_count(), means no limit.";
constexpr char JOINED_POSTS[] =
    "A batch of one write and one message of 16 bytes ignores RPMA_F_INLINE: post the two "
    "one by one.";
constexpr char READ_OF_NOTHING[] = "An rpma_read() without regions ends the program.";
constexpr char LOST_NATIVE[] =
    "A lost packet fails native flushes, and blocks native atomic writes.";

// kernel: the driver of the device's parent in sysfs; transport: "" for all transports
struct {
    std::string kernel, transport, name;
    std::vector<std::string> traps;
} const DRIVERS[] = {
#include "drivers.inc"
};

} // namespace

void add_driver(Json &device) {
    const std::string kernel = text_at(device, "driver"),
                      transport = text_at(device, "transport");
    const auto *const found =
        std::find_if(std::begin(DRIVERS), std::end(DRIVERS), [&](auto &row) {
            return row.kernel == kernel &&
                   (row.transport.empty() || row.transport == transport);
        });
    const bool known = found != std::end(DRIVERS);
    device["rpma_devices"] = known ? Json(found->name) : Json();
    device["traps"] = known ? Json(found->traps) : Json::array();
}
