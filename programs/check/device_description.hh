// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// device_description.hh -- the device, its description in a report, and the properties that it
// shows

#pragma once

#include "check.hh"

// The peer of an address. Throws a Failure that names the cause and a remedy.
rpma::peer peer_of(const std::string &address, rpma_util_ibv_context_type type);
// Driver, model, firmware, kernel, rdma-core, link: the side of a report.
Json describe_device(ibv_context *context);
// The properties of sim/device/devices.tsv that queries and the creation of objects show.
Json attributes_of(ibv_context *context, ibv_pd *pd);
// The name of an error; "0" for 0, and for a number without a name.
std::string error_name(int error);
