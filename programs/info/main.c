// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// main.c -- rpma-info: what librpma can do on this machine, and the reasons for what it cannot

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "info.h"
#include "library.h"

static void add_text_or_null(tree *parent, const char *key, const char *text) {
    if (text != NULL)
        add_text(parent, key, "%s", text);
    else
        add_null(parent, key);
}

/* Adds the user's question to the report and looks up the device of an address. */
static bool add_question(tree *report, const struct options *options,
                         char device[IBV_SYSFS_NAME_MAX]) {
    tree *asked = add_object(report, "asked");
    bool is_remote = false;
    add_text_or_null(asked, "address", options->address);
    add_text_or_null(asked, "device", options->device);
    add_text_or_null(asked, "memory", options->memory);
    if (options->address == NULL)
        return true;
    (void)last_library_error();
    if (device_behind(options->address, device, &is_remote)) {
        add_yes(asked, "found");
        add_text(asked, "behind", "%s", device);
        add_bool(asked, "remote", is_remote);
        return true;
    }
    add_no(asked, "found",
           text_of("no device of this machine leads to %s: %s", options->address,
                   last_library_error()),
           text_of("without ADDRESS, rpma-info lists the addresses that lead to devices"));
    return false;
}

static bool any_device(const tree *report, bool (*fits)(const tree *device)) {
    const tree *devices = child(report, "devices");
    for (size_t i = 0; i < json_object_array_length(devices); i++)
        if (fits(json_object_array_get_idx(devices, i)))
            return true;
    return false;
}

static bool is_usable(const tree *device) {
    return is_yes(device, "usable");
}

static bool registers(const tree *device) {
    return is_yes(child(device, "registration"), "usage_plain");
}

static void add_summary(tree *report, const struct options *options, bool has_devices) {
    const tree *asked = child(report, "asked"), *found = child(asked, "found");
    if (any_device(report, is_usable))
        add_yes(report, "usable");
    else if (!has_devices)
        add_no_device(report, "usable", options->device);
    else if (found != NULL && !is_yes(asked, "found"))
        add_no(report, "usable", text_of("%s", text_at(found, "why")),
               text_of("%s", text_at(found, "help")));
    else if (json_object_array_length(child(report, "devices")) > 0)
        add_no(report, "usable", text_of("no device can be used as it is"),
               text_of("see the answer of the device"));
    else
        add_no(report, "usable", text_of("there is no device %s", options->device),
               text_of("without --device, rpma-info lists all devices"));
}

static enum status status_of(const tree *report, const struct options *options) {
    if (!is_yes(report, "usable"))
        return STATUS_NO_DEVICE;
    if (options->memory != NULL && !any_device(report, registers))
        return STATUS_NOT_REGISTERED;
    return STATUS_POSSIBLE;
}

static enum status make_report(tree *report, const struct options *options,
                               const struct memory *memory) {
    char device[IBV_SYSFS_NAME_MAX] = "";
    struct search search = {.device = options->device, .memory = memory};
    add_number(report, "rpma_info", 1);
    add_versions(report);
    add_limits(report);
    add_text_or_null(report, "rpma_flush", getenv("RPMA_FLUSH"));
    add_connection_manager(report);
    add_defaults(report);
    if (!add_question(report, options, device))
        search.device = ""; /* none */
    else if (options->address != NULL)
        search.device = device;
    struct addresses addresses = find_addresses();
    search.addresses = &addresses;
    const bool has_devices = add_devices(report, &search);
    free(addresses.items);
    add_summary(report, options, has_devices);
    if (memory != NULL)
        add_memory(report, memory);
    const enum status status = status_of(report, options);
    add_number(report, "exit_status", status);
    return status;
}

static void print_json(tree *report) {
    puts(json_object_to_json_string_ext(report, JSON_C_TO_STRING_PRETTY |
                                                    JSON_C_TO_STRING_SPACED |
                                                    JSON_C_TO_STRING_NOSLASHESCAPE));
}

int main(int argc, char **argv) {
    const struct options options = parse_options(argc, argv);
    struct memory memory;
    if (options.memory != NULL)
        map_memory(&memory, options.memory);
    tree *report = tree_new();
    be_quiet();
    enum status status = make_report(report, &options, options.memory != NULL ? &memory : NULL);
    speak();
    if (options.json)
        print_json(report);
    else
        print_text(report);
    if (fflush(stdout) != 0) {
        perror("rpma-info: the answers cannot be written");
        status = STATUS_FAILED;
    }
    json_object_put(report);
    if (options.memory != NULL)
        unmap_memory(&memory);
    return (int)status;
}
