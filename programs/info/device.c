// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// device.c -- each RDMA device: whether it can be used, and the findings of the other parts

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "info.h"
#include "library.h"

static void add_addresses(tree *device, const struct addresses *all, const char *name) {
    tree *list = add_list(device, "addresses");
    for (size_t i = 0; i < all->count; i++) {
        char mtu[LINE_SIZE];
        if (strcmp(all->items[i].device, name) != 0)
            continue;
        char *path = text_of("/sys/class/net/%s/mtu", all->items[i].netdev);
        read_line(mtu, sizeof(mtu), path);
        free(path);
        tree *address = append_object(list);
        add_text(address, "address", "%s", all->items[i].text);
        add_text(address, "netdev", "%s", all->items[i].netdev);
        add_number(address, "netdev_mtu", strtoull(mtu, NULL, 10));
    }
}

static void add_driver(tree *device, const struct ibv_device_attr *limits) {
    char *link = text_of("/sys/class/infiniband/%s/device/driver", text_at(device, "name"));
    char *driver = realpath(link, NULL);
    if (driver != NULL)
        add_text(device, "driver", "%s", strrchr(driver, '/') + 1);
    else if (limits->vendor_id == VENDOR_RXE)
        add_text(device, "driver", "rdma_rxe");
    else if (limits->vendor_id == VENDOR_SIW)
        add_text(device, "driver", "siw");
    else
        add_null(device, "driver");
    free(driver);
    free(link);
}

/* An address in the device's GID table that no network device of this namespace has. */
static const char *foreign_address(const tree *device, const struct addresses *all) {
    const tree *ports = child(device, "ports");
    for (size_t i = 0; i < json_object_array_length(ports); i++) {
        const tree *gids = child(json_object_array_get_idx(ports, i), "gids");
        for (size_t j = 0; j < json_object_array_length(gids); j++) {
            const char *address = text_at(json_object_array_get_idx(gids, j), "address");
            if (address[0] != '\0' && strncmp(address, "fe80:", 5) != 0 &&
                !is_own_address(all, address))
                return address;
        }
    }
    return NULL;
}

static void add_no_address(tree *device, const struct addresses *all) {
    const char *foreign = foreign_address(device, all);
    char netdev[LINE_SIZE];
    netdev_of(netdev, sizeof(netdev), text_at(device, "name"));
    if (access("/dev/infiniband/rdma_cm", R_OK | W_OK) != 0)
        add_no(device, "usable",
               text_of("librdmacm cannot say which addresses lead to the device"),
               text_of("see the answer about the connection manager"));
    else if (foreign != NULL)
        add_no(device, "usable",
               text_of("its address %s belongs to no network device of this network namespace",
                       foreign),
               text_of("run the program in the namespace that has it: ip netns exec"));
    else
        add_no(device, "usable", text_of("no IP address leads to the device"),
               text_of("give its network device one: ip address add ADDRESS/LENGTH dev %s; or "
                       "run the program in the network namespace of that: ip netns exec",
                       netdev));
}

static const tree *inactive_port(const tree *device) {
    const tree *ports = child(device, "ports"), *found = NULL;
    for (size_t i = 0; i < json_object_array_length(ports); i++) {
        const tree *port = json_object_array_get_idx(ports, i);
        if (is_yes(port, "active"))
            return NULL;
        found = child(port, "active");
    }
    return found;
}

static void add_usable(tree *device, const struct search *search) {
    const tree *port = inactive_port(device);
    if (port != NULL)
        add_no(device, "usable", text_of("%s", text_at(port, "why")),
               text_of("%s", text_at(port, "help")));
    else if (json_object_array_length(child(device, "addresses")) == 0)
        add_no_address(device, search->addresses);
    else
        add_yes(device, "usable");
}

static void add_opened(tree *device, struct ibv_context *context, const struct search *search) {
    struct ibv_device_attr_ex attributes;
    struct rpma_peer *peer = NULL;
    memset(&attributes, 0, sizeof(attributes));
    if (ibv_query_device_ex(context, NULL, &attributes) != 0 ||
        rpma_peer_new(context, &peer) != 0) {
        add_no(device, "usable",
               text_of("librpma makes no peer of the device: %s", last_library_error()),
               text_of("docs/troubleshooting.md of librpma explains the line"));
        return;
    }
    const struct ibv_device_attr *limits = &attributes.orig_attr;
    const bool is_iwarp = context->device->transport_type == IBV_TRANSPORT_IWARP;
    add_driver(device, limits);
    add_text(device, "transport", is_iwarp ? "iWARP" : "InfiniBand");
    add_traps(device);
    add_text(device, "firmware", "%s", limits->fw_ver);
    add_ports(device, context, limits);
    add_addresses(device, search->addresses, text_at(device, "name"));
    add_usable(device, search);
    add_capabilities(device, context, peer, &attributes);
    add_device_limits(device, context, limits);
    if (search->memory != NULL)
        add_registration(device, peer, search->memory);
    (void)rpma_peer_delete(&peer);
}

static void add_closed(tree *device, const char *node, int error) {
    if (access(node, R_OK | W_OK) == 0)
        add_no(device, "usable", text_of("the device does not open: %s", strerror(error)),
               text_of("look for the driver's lines in the log of the kernel: dmesg"));
    else
        add_no(device, "usable", text_of("%s: %s", node, strerror(errno)),
               text_of("let this user read and write it: chmod, or a rule of udev"));
}

static void add_device(tree *devices, struct ibv_device *found, const struct search *search) {
    tree *device = append_object(devices);
    char *node = text_of("/dev/infiniband/%s", found->dev_name);
    add_text(device, "name", "%s", ibv_get_device_name(found));
    add_text(device, "node", "%s", node);
    errno = 0;
    struct ibv_context *context = ibv_open_device(found);
    if (context == NULL) {
        add_closed(device, node, errno);
    } else {
        add_opened(device, context, search);
        (void)ibv_close_device(context);
    }
    free(node);
}

static bool is_wanted(const char *name, const struct search *search) {
    return search->device == NULL || strcmp(search->device, name) == 0;
}

/* Adds the devices that libibverbs does not list; returns whether the kernel has any device. */
static bool add_unlisted(tree *devices, struct ibv_device **list, int count,
                         const struct search *search) {
    bool any = false;
    DIR *directory = opendir("/sys/class/infiniband");
    const struct dirent *entry;
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        any = any || entry->d_name[0] != '.';
        bool listed = entry->d_name[0] == '.' || !is_wanted(entry->d_name, search);
        for (int i = 0; i < count && !listed; i++)
            listed = strcmp(ibv_get_device_name(list[i]), entry->d_name) == 0;
        if (listed)
            continue;
        tree *device = append_object(devices);
        add_text(device, "name", "%s", entry->d_name);
        add_null(device, "node");
        add_no(
            device, "usable", text_of("the kernel has the device, libibverbs does not list it"),
            text_of(
                "modprobe ib_uverbs, and install the providers (Debian: ibverbs-providers)"));
    }
    if (directory != NULL)
        (void)closedir(directory);
    return any;
}

bool add_devices(tree *report, const struct search *search) {
    tree *devices = add_list(report, "devices");
    int count = 0;
    struct ibv_device **list = ibv_get_device_list(&count);
    for (int i = 0; i < count; i++)
        if (is_wanted(ibv_get_device_name(list[i]), search))
            add_device(devices, list[i], search);
    const bool any = add_unlisted(devices, list, count, search) || count > 0;
    if (list != NULL)
        ibv_free_device_list(list);
    return any;
}
