// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// port.c -- the ports of a device: state, MTU, and the addresses in its GID table

#include <arpa/inet.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "info.h"

#define MAX_GIDS 1024

static unsigned bytes_of(enum ibv_mtu mtu) {
    return mtu == 0 ? 0 : 128U << mtu;
}

static const char *layer_of(uint8_t layer) {
    return layer == IBV_LINK_LAYER_ETHERNET     ? "Ethernet"
           : layer == IBV_LINK_LAYER_INFINIBAND ? "InfiniBand"
                                                : "unspecified";
}

static void first_entry(char *name, size_t size, const char *directory) {
    DIR *entries = opendir(directory);
    const struct dirent *entry;
    while (entries != NULL && (entry = readdir(entries)) != NULL)
        if (entry->d_name[0] != '.')
            (void)snprintf(name, size, "%s", entry->d_name);
    if (entries != NULL)
        (void)closedir(entries);
}

/* rdma_rxe has the name in a file, adapters have it in a directory, siw beside the GID. */
void netdev_of(char *name, size_t size, const char *device) {
    char *parent = text_of("/sys/class/infiniband/%s/parent", device);
    char *adapter = text_of("/sys/class/infiniband/%s/device/net", device);
    char *beside_gid = text_of("/sys/class/infiniband/%s/ports/1/gid_attrs/ndevs/0", device);
    read_line(name, size, parent);
    if (name[0] == '\0')
        first_entry(name, size, adapter);
    if (name[0] == '\0')
        read_line(name, size, beside_gid);
    if (name[0] == '\0')
        (void)snprintf(name, size, "NETDEV");
    free(parent);
    free(adapter);
    free(beside_gid);
}

static const char *gid_type_of(uint32_t type) {
    return type == IBV_GID_TYPE_ROCE_V2   ? "RoCE v2"
           : type == IBV_GID_TYPE_ROCE_V1 ? "RoCE v1"
                                          : "IB";
}

/* A GID has an IPv4 address as an IPv4-mapped IPv6 address, ::ffff:ADDRESS. */
static void write_gid(tree *gid, const struct ibv_gid_entry *entry) {
    char digits[INET6_ADDRSTRLEN];
    struct in6_addr address;
    memcpy(&address, entry->gid.raw, sizeof(address));
    add_text(gid, "gid", "%s", inet_ntop(AF_INET6, &address, digits, sizeof(digits)));
    if (IN6_IS_ADDR_V4MAPPED(&address))
        (void)inet_ntop(AF_INET, entry->gid.raw + 12, digits, sizeof(digits));
    if (entry->gid_type == IBV_GID_TYPE_ROCE_V1 || entry->gid_type == IBV_GID_TYPE_ROCE_V2)
        add_text(gid, "address", "%s", digits);
    else
        add_null(gid, "address");
}

static void add_gids(tree *port, struct ibv_context *context, uint32_t number) {
    static struct ibv_gid_entry entries[MAX_GIDS];
    const char *device = ibv_get_device_name(context->device);
    const ssize_t count = ibv_query_gid_table(context, entries, MAX_GIDS, 0);
    tree *gids = add_list(port, "gids");
    for (ssize_t i = 0; i < count; i++) {
        if (entries[i].port_num != number)
            continue;
        char netdev[LINE_SIZE];
        char *path = text_of("/sys/class/infiniband/%s/ports/%u/gid_attrs/ndevs/%u", device,
                             number, entries[i].gid_index);
        read_line(netdev, sizeof(netdev), path);
        free(path);
        tree *gid = append_object(gids);
        add_number(gid, "index", entries[i].gid_index);
        write_gid(gid, &entries[i]);
        add_text(gid, "type", "%s", gid_type_of(entries[i].gid_type));
        if (netdev[0] != '\0')
            add_text(gid, "netdev", "%s", netdev);
        else
            add_null(gid, "netdev");
    }
}

static void add_state(tree *port, const char *device, enum ibv_port_state state,
                      bool ethernet) {
    char netdev[LINE_SIZE];
    add_text(port, "state", "%s", ibv_port_state_str(state));
    if (state == IBV_PORT_ACTIVE) {
        add_yes(port, "active");
        return;
    }
    netdev_of(netdev, sizeof(netdev), device);
    char *why = text_of("the port is not active: %s", ibv_port_state_str(state));
    if (ethernet)
        add_no(port, "active", why,
               text_of("bring its network device up (ip link set %s up), and look at the cable",
                       netdev));
    else
        add_no(port, "active", why,
               text_of("look at the cable, and whether a subnet manager runs (opensm)"));
}

void add_ports(tree *device, struct ibv_context *context,
               const struct ibv_device_attr *limits) {
    tree *ports = add_list(device, "ports");
    for (unsigned number = 1; number <= limits->phys_port_cnt; number++) {
        struct ibv_port_attr port;
        if (ibv_query_port(context, (uint8_t)number, &port) != 0)
            continue;
        const bool is_infiniband = port.link_layer == IBV_LINK_LAYER_INFINIBAND;
        tree *entry = append_object(ports);
        add_number(entry, "number", number);
        add_state(entry, ibv_get_device_name(context->device), port.state, !is_infiniband);
        add_text(entry, "link_layer", "%s", layer_of(port.link_layer));
        add_number(entry, "active_mtu", bytes_of(port.active_mtu));
        add_number(entry, "max_mtu", bytes_of(port.max_mtu));
        add_gids(entry, context, number);
    }
}
