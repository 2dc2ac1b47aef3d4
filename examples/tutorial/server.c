// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// server.c -- one client writes to the memory of this program, which only waits

#define _GNU_SOURCE
#include <fcntl.h>
#include <librpma.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define SIZE 4096

static void
must(int ret, const char *what)
{
    if (ret) {
        fprintf(stderr, "%s: %s\n", what, rpma_err_2str(ret));
        exit(EXIT_FAILURE);
    }
}

static enum rpma_conn_event
wait_for_event(struct rpma_conn *conn)
{
    enum rpma_conn_event event;
    int ret;
    while ((ret = rpma_conn_next_event(conn, &event)) ==
           RPMA_E_NO_EVENT)
        ; /* the link address changed: wait again */
    must(ret, "event");
    return event;
}

/* persistent memory: a file on FS-DAX */
static char *
map_file(const char *path)
{
    int fd = open(path, O_RDWR);
    char *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
                        MAP_SHARED_VALIDATE | MAP_SYNC, fd, 0);
    (void) close(fd);
    return memory == MAP_FAILED ? NULL : memory;
}

int
main(int argc, char *argv[])
{
    int usage = RPMA_MR_USAGE_WRITE_DST |
                RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY;
    struct ibv_context *device = NULL;
    struct rpma_peer *peer = NULL;
    struct rpma_mr_local *mr = NULL;
    struct rpma_peer_cfg *pcfg = NULL;
    struct rpma_ep *ep = NULL;
    struct rpma_conn_req *req = NULL;
    struct rpma_conn *conn = NULL;
    enum rpma_conn_event event;
    uint8_t buffer[56];
    struct rpma_conn_private_data offer = {buffer, sizeof(buffer)};
    int ret;

    bool is_pmem = argc == 4;
    char *memory = is_pmem ? map_file(argv[3]) : calloc(1, SIZE);
    if (argc < 3 || argc > 4 || memory == NULL) {
        fprintf(stderr, "usage: %s ADDRESS PORT [FILE]\n", argv[0]);
        return EXIT_FAILURE;
    }
    if (is_pmem)
        usage |= RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;

    /* the device, and memory for the client to write to */
    must(rpma_utils_get_ibv_context(argv[1],
             RPMA_UTIL_IBV_CONTEXT_LOCAL, &device), "device");
    must(rpma_peer_new(device, &peer), "peer");
    must(rpma_mr_reg(peer, memory, SIZE, usage, &mr), "region");

    /* the client gets the region, and how to flush it */
    must(rpma_peer_cfg_new(&pcfg), "configuration");
    must(rpma_peer_cfg_set_direct_write_to_pmem(pcfg, is_pmem),
         "direct write");
    const struct rpma_mr_local *mrs[] = {mr};
    must(rpma_conn_private_data_pack(mrs, 1, pcfg, NULL, 0, &offer),
         "offer");

    must(rpma_ep_listen(peer, argv[1], argv[2], &ep), "listen");
    while ((ret = rpma_ep_next_conn_req(ep, NULL, &req)) ==
           RPMA_E_NO_EVENT)
        ; /* the link address changed: wait again */
    must(ret, "request");
    must(rpma_conn_req_connect(&req, &offer, &conn), "accept");
    event = wait_for_event(conn);
    if (event == RPMA_CONN_ESTABLISHED) {
        /* the client writes: wait for the end of the connection */
        event = wait_for_event(conn);
        (void) rpma_conn_disconnect(conn);
    }
    printf("%s: %.*s\n", rpma_utils_conn_event_2str(event), SIZE,
        memory);

    (void) rpma_conn_delete(&conn);
    (void) rpma_ep_shutdown(&ep);
    (void) rpma_peer_cfg_delete(&pcfg);
    (void) rpma_mr_dereg(&mr);
    (void) rpma_peer_delete(&peer);
    if (!is_pmem)
        free(memory);
    return EXIT_SUCCESS;
}
