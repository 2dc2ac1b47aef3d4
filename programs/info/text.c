// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// text.c -- the report as text, in lines that fit the terminal

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "info.h"

#define WIDTH 80
#define NARROWEST 40
#define LABEL 20

/* The columns of a line; output to a file or a pipe is for a terminal of 80 columns. */
static int width(void) {
    struct winsize window;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0)
        return WIDTH;
    return window.ws_col < NARROWEST ? NARROWEST : window.ws_col;
}

/* Prints a label and its words, with the following lines indented below the first word. */
static void row(const char *label, char *words) {
    int column = printf("  %-*s", LABEL, label);
    const int indent = column, limit = width();
    bool begun = false;
    for (const char *word = words; *word != '\0';) {
        const int length = (int)strcspn(word, " ");
        if (begun && column + 1 + length > limit) {
            printf("\n%*s", indent, "");
            column = indent;
            begun = false;
        }
        column += printf("%s%.*s", begun ? " " : "", length, word);
        begun = true;
        word += length + (word[length] == ' ');
    }
    putchar('\n');
    free(words);
}

static void answer_row(const char *label, const tree *parent, const char *key, const char *yes,
                       const char *no) {
    const tree *answer = child(parent, key);
    if (is_yes(parent, key)) {
        row(label, text_of("%s", yes));
        return;
    }
    row(label, text_of("%s: %s", child(answer, "is") == NULL ? "unknown" : no,
                       text_at(answer, "why")));
    row("", text_of("-> %s", text_at(answer, "help")));
}

static const tree *each(const tree *list, size_t i) {
    return json_object_array_get_idx(list, i);
}

static size_t count_of(const tree *list) {
    return list == NULL ? 0 : json_object_array_length(list);
}

static char *limit_text(const tree *limit, const char *key, uint64_t unit) {
    return child(limit, key) == NULL ? text_of("unlimited")
                                     : text_of("%" PRIu64, number_at(limit, key) / unit);
}

static void print_machine(const tree *report) {
    const tree *versions = child(report, "versions"), *limits = child(report, "limits");
    const tree *memory = child(limits, "locked_memory"), *files = child(limits, "descriptors");
    puts("This machine");
    row("librpma", text_of("%s", text_at(versions, "librpma")));
    if (child(versions, "rdma_core") != NULL)
        row("rdma-core", text_of("%s", text_at(versions, "rdma_core")));
    else
        row("rdma-core", text_of("unknown: the name of %s does not tell it",
                                 text_at(versions, "libibverbs")));
    row("kernel", text_of("%s", text_at(versions, "kernel")));
    answer_row("connection manager", report, "connection_manager", "yes", "no");
    answer_row("locked memory", memory, "unlimited", "unlimited", "limited");
    char *soft = limit_text(files, "soft", 1), *hard = limit_text(files, "hard", 1);
    row("descriptors", text_of("%s, at most %s; a connection takes two or three", soft, hard));
    free(soft);
    free(hard);
    if (child(report, "rpma_flush") != NULL)
        row("environment", text_of("RPMA_FLUSH=%s", text_at(report, "rpma_flush")));
    const tree *asked = child(report, "asked");
    if (child(asked, "behind") != NULL)
        row("address",
            text_of("%s is behind %s", text_at(asked, "address"), text_at(asked, "behind")));
    answer_row("devices", report, "usable", "yes", "none that can be used");
}

static void print_port(const tree *port, const char *label) {
    row(label,
        text_of("%" PRIu64 ": %s, %s, MTU %" PRIu64 " of %" PRIu64, number_at(port, "number"),
                text_at(port, "state"), text_at(port, "link_layer"),
                number_at(port, "active_mtu"), number_at(port, "max_mtu")));
    const tree *gids = child(port, "gids");
    for (size_t i = 0; i < count_of(gids); i++) {
        const tree *gid = each(gids, i);
        const char *address = text_at(gid, "address");
        row(i == 0 ? "GIDs" : "", text_of("%" PRIu64 ": %s%s%s %s", number_at(gid, "index"),
                                          address[0] != '\0' ? address : text_at(gid, "gid"),
                                          child(gid, "netdev") != NULL ? " on " : "",
                                          text_at(gid, "netdev"), text_at(gid, "type")));
    }
}

static void print_limits(const tree *limits, const tree *defaults) {
    static const struct {
        const char *label, *limit, *of, *setting;
    } rows[] = {
        {"send queue", "sq_size", "connection", "sq_size"},
        {"receive queue", "rq_size", "connection", "rq_size"},
        {"completion queue", "cq_size", "connection", "cq_size"},
        {"shared receives", "srq_size", "shared_receive_queue", "rq_size"},
        {"elements", "max_sge", "connection", "max_sge"},
        {"elements of a read", "max_read_sge", "connection", "max_sge"},
        {"elements, shared", "max_srq_sge", "shared_receive_queue", "max_sge"},
        {"inline bytes", "inline_size", "connection", "inline_size"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *limit = child(limits, rows[i].limit) == NULL
                          ? text_of("unknown, because no queue pair can be made")
                          : text_of("at most %" PRIu64, number_at(limits, rows[i].limit));
        row(rows[i].label, text_of("%s; by default %" PRIu64, limit,
                                   number_at(child(defaults, rows[i].of), rows[i].setting)));
        free(limit);
    }
}

static void print_sentences(const char *label, const tree *sentences) {
    for (size_t i = 0; i < count_of(sentences); i++)
        row(i == 0 ? label : "",
            text_of("%s", json_object_get_string(json_object_array_get_idx(sentences, i))));
}

static void print_registration(const tree *found) {
    if (found == NULL)
        return;
    answer_row("registers", found, "usage_plain", "yes", "no");
    answer_row("flush, visibility", found, "usage_visibility", "registers", "no");
    answer_row("flush, persistent", found, "usage_persistent", "registers", "no");
    answer_row("pinned", found, "pinned", "yes", "no");
    answer_row("paged on demand", found, "on_demand", "yes", "no");
    answer_row("persistent, really", found, "persistent_flush", "yes", "no");
    print_sentences("remarks", child(found, "remarks"));
}

static void print_device(const tree *device, const tree *defaults) {
    printf("\nDevice %s\n", text_at(device, "name"));
    answer_row("can be used", device, "usable", "yes", "no");
    if (child(device, "ports") == NULL)
        return;
    const bool described = child(device, "rpma_devices") != NULL;
    row("driver",
        text_of("%s, %s; %s%s",
                child(device, "driver") == NULL ? "unknown" : text_at(device, "driver"),
                text_at(device, "transport"),
                described ? text_at(device, "rpma_devices") : "not", " in rpma_devices(7)"));
    print_sentences("traps", child(device, "traps"));
    const tree *ports = child(device, "ports"), *addresses = child(device, "addresses");
    for (size_t i = 0; i < count_of(addresses); i++)
        row(i == 0 ? "addresses" : "",
            text_of("%s on %s (MTU %" PRIu64 ")", text_at(each(addresses, i), "address"),
                    text_at(each(addresses, i), "netdev"),
                    number_at(each(addresses, i), "netdev_mtu")));
    for (size_t i = 0; i < count_of(ports); i++)
        print_port(each(ports, i), "port");
    const tree *operations = child(device, "operations");
    answer_row("flush", operations, "native_flush", "native", "emulated");
    answer_row("atomic write", operations, "native_atomic_write", "native", "emulated");
    answer_row("on-demand paging", operations, "on_demand_paging", "yes", "no");
    print_limits(child(device, "limits"), defaults);
    print_registration(child(device, "registration"));
}

static void print_memdev(const tree *device) {
    row("CXL device",
        text_of("%s, serial number %s, %" PRIu64 " bytes persistent, %" PRIu64 " volatile",
                text_at(device, "memdev"), text_at(device, "serial"),
                number_at(device, "persistent_size"), number_at(device, "volatile_size")));
    answer_row("GPF, device", device, "flush_of_device", "yes", "no");
    answer_row("GPF, port", device, "flush_of_port", "yes", "no");
    row("dirty shutdowns", child(device, "dirty_shutdowns") == NULL
                               ? text_of("the kernel tells no count")
                               : text_of("%" PRIu64, number_at(device, "dirty_shutdowns")));
    row("poison list",
        json_object_get_boolean(child(device, "poison_list"))
            ? text_of("'cxl list -m %s --media-errors' shows it", text_at(device, "memdev"))
            : text_of("the device has none"));
}

static void print_cxl(const tree *cxl) {
    if (cxl == NULL)
        return;
    row("CXL region", text_of("%s, mode %s, %" PRIu64 " bytes", text_at(cxl, "region"),
                              text_at(cxl, "mode"), number_at(cxl, "size")));
    for (size_t i = 0; i < count_of(child(cxl, "devices")); i++)
        print_memdev(each(child(cxl, "devices"), i));
    answer_row("direct write", cxl, "direct_write", "yes", "no");
}

static void print_memory(const tree *memory) {
    printf("\nMemory %s\n", text_at(memory, "path"));
    row("kind", text_of("%s", text_at(memory, "kind")));
    row("size", text_of("%" PRIu64 " bytes, of which %" PRIu64 " were tried",
                        number_at(memory, "size"), number_at(memory, "tried_size")));
    row("alignment", text_of("%" PRIu64, number_at(memory, "alignment")));
    if (child(memory, "map_sync") != NULL)
        row("MAP_SYNC",
            text_of("%s", json_object_get_boolean(child(memory, "map_sync")) ? "yes" : "no"));
    if (child(memory, "persistence_domain") != NULL)
        row("power failure",
            text_of("spares what has reached: %s", text_at(memory, "persistence_domain")));
    answer_row("persistent", memory, "persistent", "yes", "no");
    print_cxl(child(memory, "cxl"));
}

void print_text(const tree *report) {
    const tree *devices = child(report, "devices"), *memory = child(report, "memory");
    print_machine(report);
    for (size_t i = 0; i < count_of(devices); i++)
        print_device(each(devices, i), child(report, "defaults"));
    if (memory != NULL)
        print_memory(memory);
}
