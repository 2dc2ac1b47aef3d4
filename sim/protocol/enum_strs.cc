// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// enum_strs.cc -- names of values, and rates. rdma-core's man pages and programs show these
// texts.

#include <infiniband/verbs.h>

namespace {

template <unsigned N>
const char *text_of(const char *const (&texts)[N], unsigned value, const char *other) {
    return value < N && texts[value] ? texts[value] : other;
}

constexpr const char *STATUSES[] = {"success",
                                    "local length error",
                                    "local QP operation error",
                                    "local EE context operation error",
                                    "local protection error",
                                    "Work Request Flushed Error",
                                    "memory bind operation error",
                                    "bad response error",
                                    "local access error",
                                    "remote invalid request error",
                                    "remote access error",
                                    "remote operation error",
                                    "transport retry counter exceeded",
                                    "RNR retry counter exceeded",
                                    "local RDD violation error",
                                    "remote invalid RD request",
                                    "aborted error",
                                    "invalid EE context number",
                                    "invalid EE context state",
                                    "fatal error",
                                    "response timeout error",
                                    "general error",
                                    "TM error",
                                    "TM software rendezvous"};
constexpr const char *EVENTS[] = {"CQ error",
                                  "local work queue catastrophic error",
                                  "invalid request local work queue error",
                                  "local access violation work queue error",
                                  "communication established",
                                  "send queue drained",
                                  "path migrated",
                                  "path migration request error",
                                  "local catastrophic error",
                                  "port active",
                                  "port error",
                                  "LID change",
                                  "P_Key change",
                                  "SM change",
                                  "SRQ catastrophic error",
                                  "SRQ limit reached",
                                  "last WQE reached",
                                  "client reregistration",
                                  "GID table change",
                                  "WQ fatal"};
constexpr const char *NODES[] = {nullptr,
                                 "InfiniBand channel adapter",
                                 "InfiniBand switch",
                                 "InfiniBand router",
                                 "iWARP NIC",
                                 "usNIC",
                                 "usNIC UDP",
                                 "unspecified"};
constexpr const char *PORTS[] = {"no state change (NOP)", "down", "init", "armed", "active",
                                 "active defer"};

struct Rate {
    ibv_rate rate;
    int mult, mbps;
};
// InfiniBand Architecture Specification: multiples of 2.5 Gbit/s, and the rates in Mbit/s.
constexpr Rate RATES[] = {
    {IBV_RATE_2_5_GBPS, 1, 2500},       {IBV_RATE_5_GBPS, 2, 5000},
    {IBV_RATE_10_GBPS, 4, 10000},       {IBV_RATE_20_GBPS, 8, 20000},
    {IBV_RATE_30_GBPS, 12, 30000},      {IBV_RATE_40_GBPS, 16, 40000},
    {IBV_RATE_60_GBPS, 24, 60000},      {IBV_RATE_80_GBPS, 32, 80000},
    {IBV_RATE_120_GBPS, 48, 120000},    {IBV_RATE_14_GBPS, 6, 14062},
    {IBV_RATE_56_GBPS, 22, 56250},      {IBV_RATE_112_GBPS, 45, 112500},
    {IBV_RATE_168_GBPS, 67, 168750},    {IBV_RATE_25_GBPS, 10, 25781},
    {IBV_RATE_100_GBPS, 41, 103125},    {IBV_RATE_200_GBPS, 82, 206250},
    {IBV_RATE_300_GBPS, 124, 309375},   {IBV_RATE_28_GBPS, 11, 28125},
    {IBV_RATE_50_GBPS, 20, 53125},      {IBV_RATE_400_GBPS, 160, 425000},
    {IBV_RATE_600_GBPS, 240, 637500},   {IBV_RATE_800_GBPS, 320, 850000},
    {IBV_RATE_1200_GBPS, 480, 1275000},
};

} // namespace

extern "C" {

const char *ibv_wc_status_str(enum ibv_wc_status status) {
    return text_of(STATUSES, status, "unknown");
}
const char *ibv_event_type_str(enum ibv_event_type event) {
    return text_of(EVENTS, event, "unknown");
}
const char *ibv_node_type_str(enum ibv_node_type type) {
    return text_of(NODES, static_cast<unsigned>(type), "unknown");
}
const char *ibv_port_state_str(enum ibv_port_state state) {
    return text_of(PORTS, state, "unknown");
}

int ibv_rate_to_mult(enum ibv_rate rate) {
    for (const Rate &row : RATES)
        if (row.rate == rate)
            return row.mult;
    return -1;
}
int ibv_rate_to_mbps(enum ibv_rate rate) {
    for (const Rate &row : RATES)
        if (row.rate == rate)
            return row.mbps;
    return -1;
}
enum ibv_rate mult_to_ibv_rate(int mult) {
    for (const Rate &row : RATES)
        if (row.mult == mult)
            return row.rate;
    return IBV_RATE_MAX;
}
enum ibv_rate mbps_to_ibv_rate(int mbps) {
    for (const Rate &row : RATES)
        if (row.mbps == mbps)
            return row.rate;
    return IBV_RATE_MAX;
}
}
