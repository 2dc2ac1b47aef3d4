/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the librpma developers */

/*
 * common.h -- functions that the examples share, so that each shows only its own subject.
 *
 * An example exits at the first failure: it prints the call that failed and returns
 * EXIT_FAILURE; the kernel releases its resources. A long-running program handles the codes.
 */

#ifndef EXAMPLES_COMMON_H
#define EXAMPLES_COMMON_H 1

#include <librpma.h>

/* ---- program.c: arguments, and the exit on failures -------------------------------------- */

struct program {
    unsigned char example;    /* its number: programs of other examples are refused */
    const char *purpose;      /* one line for the usage */
    const char *variant;      /* name of the option that chooses the variant, or NULL */
    const char *number;       /* meaning of its number, or NULL if it has none */
    bool many_servers;        /* has the address and port of several servers */
    bool uses_file;           /* has the argument FILE: persistent memory */
    bool direct_write_option; /* has the option --direct-write */
    const char *new_option;   /* effect of the option --new, or NULL if there is none */
};

struct arguments {
    const char *addr;
    const char *port;
    char **servers; /* with many_servers: address, port, address, port … */
    int server_count;
    const char *file; /* persistent memory; NULL: plain memory */
    unsigned number;
    bool variant;
    bool direct_write; /* stated by the operator; see has_direct_write() */
    bool make_new;
};

/* Called first: /dev/null replaces closed standard descriptors, and the program fails at its
 * exit if its output could not be written. */
void begin_program(void);

/* Begins the program and reads the arguments; invalid ones print the usage and exit with
 * status 2. */
struct arguments read_arguments(int argc, char *argv[], const struct program *program);

/* Prints one line, "client: …", and exits with EXIT_FAILURE. */
void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* Reads a line of the standard input without its newline: any bytes, at most size of them, and
 * also the last line if it has no newline. Returns false at the end of the input. Fails if a
 * line is longer, or if the input cannot be read. */
bool read_line(char *line, size_t size, size_t *length);

/* Fails unless the call of librpma returned 0. */
#define CALL(call) check_call((call), #call)
void check_call(int ret, const char *call);

/* ---- memory.c: memory to work on, and data that can be checked --------------------------- */

#define BLOCK_SIZE 4096UL

struct memory {
    char *ptr;
    size_t size; /* may exceed the requested size */
    bool is_pmem;
    bool direct_write; /* PMem, and the platform itself guarantees direct write to it */
    void (*persist)(const void *ptr, size_t size); /* no operation for plain memory */
    void *map;
    int fd; /* of the file, open while the memory is mapped; -1: plain memory */
};

/* Maps a file on FS-DAX (created, and enlarged to size, if necessary) or a DAX device; plain
 * memory, zeroed, if file is NULL. */
struct memory open_memory(const char *file, size_t size);
void close_memory(struct memory *memory);

/* Locks a part of the file for this process until it closes the memory or exits, also after a
 * crash. Fails if another process has locked some of it. Plain memory needs no lock. */
void lock_memory(const struct memory *memory, const char *file, size_t begin, size_t size);

/* "persistent memory" or "plain memory" */
const char *memory_kind(const struct memory *memory);

/* The text by which a client describes data that it has flushed to this kind of memory. */
const char *describe_persistence(bool direct_write);

/*
 * Returns true if data that the RDMA device writes into the memory survives a power failure
 * after a persistent flush. A program can detect this only if the caches of the processor
 * also survive a power failure; otherwise the operator has to state it.
 */
bool has_direct_write(const struct arguments *args, const struct memory *memory);

/* Writes readable lines that differ from each other and from those of another number. */
void fill_block(void *ptr, size_t size, unsigned number);
bool has_block(const void *ptr, size_t size, unsigned number);
/* Fails unless the block is there. */
void check_block(const void *ptr, size_t size, unsigned number);

/* FNV-1a: it fits into the immediate data of an operation. */
uint32_t checksum(const void *ptr, size_t size);

/* ---- connection.c: devices, connections, and their private data -------------------------- */

/* Resources of each side: its device, and memory that is registered with the device. */
struct side {
    struct rpma_peer *peer;
    struct memory memory;
    struct rpma_mr_local *mr;
};

/* Opens the device of a local address, or the device with a route to a remote address. */
struct rpma_peer *open_peer(const char *addr, enum rpma_util_ibv_context_type type);

/* The device of the address (server), or the one with a route to it (client). */
struct side open_server_side(const struct arguments *args, size_t size, int usage);
struct side open_client_side(const struct arguments *args, size_t size, int usage);
struct side open_side(struct rpma_peer *peer, const char *file, size_t size, int usage);
void close_side(struct side *side);

/*
 * The description that each side sends when it connects: the number of the example, its memory,
 * if it offers some, whether flushed data is persistent in it (has_direct_write()), and the
 * operations that its device serves natively. The other side selects its flush method from
 * this.
 */
struct offer {
    const struct rpma_peer *peer;
    const struct rpma_mr_local *mr; /* the memory, or NULL */
    bool direct_write;
    unsigned number; /* identifies the client, or 0 */
};

/* The most private data of a request on InfiniBand and RoCE. */
#define PRIVATE_DATA_SIZE 56

/* Sets the number of the example in all offers; read_arguments() does. */
void set_example(unsigned char number);

/* Packs an offer into the pdata->len bytes at pdata->ptr. */
void pack_offer(const struct offer *offer, struct rpma_conn_private_data *pdata);

/* Returns true if the private data are an offer of this example; *number (may be NULL) is the
 * number in it, or 0. Any program can connect, and send anything. */
bool is_offer(const struct rpma_conn_private_data *pdata, unsigned *number);

/* The memory in the offer of the other side, or NULL. The rest of the offer is applied to the
 * connection; *direct_write (may be NULL) is its direct write to PMem. */
struct rpma_mr_remote *find_memory(struct rpma_conn *conn, bool *direct_write);

/* Returns the same, and fails without memory. */
struct rpma_mr_remote *offered_memory(struct rpma_conn *conn, bool *direct_write);

/* Creates a configuration with a receive CQ of rcq_size entries (0: no receive CQ). */
struct rpma_conn_cfg *make_conn_cfg(uint32_t rcq_size, bool shared_channel);

/* Listens, and prints a line that scripts can wait for. */
struct rpma_ep *start_listening(struct rpma_peer *peer, const struct arguments *args);

/* Wait for the next event of a connection, or the next request at an endpoint. */
enum rpma_conn_event next_event(struct rpma_conn *conn);
struct rpma_conn_req *next_request(struct rpma_ep *ep, const struct rpma_conn_cfg *cfg);

/* Takes a request at an endpoint, if there is one of this example. Refuses others, and one
 * whose client has gone: then the result is RPMA_E_NO_EVENT too. */
int take_request(struct rpma_ep *ep, const struct rpma_conn_cfg *cfg,
                 struct rpma_conn_req **req);

/* Deletes a request, and rejects its client. */
void refuse_request(struct rpma_conn_req *req, const char *reason);

/* Accepts a request and waits until the connection is established. Returns NULL if the client
 * has gone: then the next one can be accepted. offer may be NULL. */
struct rpma_conn *try_accept(struct rpma_conn_req **req, const struct offer *offer);

/* Accepts one connection with the configuration cfg (NULL: defaults). */
struct rpma_conn *accept_client(struct rpma_ep *ep, const struct rpma_conn_cfg *cfg,
                                const struct offer *offer);

/* Creates a request and connects to the server. */
struct rpma_conn *connect_to_server(struct rpma_peer *peer, const struct arguments *args,
                                    const struct rpma_conn_cfg *cfg, const struct offer *offer);

/* Sends an offer with rpma_conn_req_connect(), without waiting. offer may be NULL. */
int begin_connection(struct rpma_conn_req **req, const struct offer *offer,
                     struct rpma_conn **conn);

/* Connects, and waits until the connection is established. offer may be NULL. The functions
 * below that wait for completions detect the end of this connection, or of an accepted one. */
struct rpma_conn *establish(struct rpma_conn_req **req, const struct offer *offer);

/* End a connection: one side disconnects, the other side waits for the disconnection. */
void disconnect(struct rpma_conn **conn);
void await_disconnect(struct rpma_conn **conn);

/* Waits until the descriptor of a queue is readable, and fails after a minute. When the
 * connection ends meanwhile, its operations complete with an error. */
void await_readable(int fd);

/* ---- completion.c: waiting for completions ------------------------------------------------
 */

enum completion_kind { OPERATION, RECEIVE };

/*
 * The CQs of a connection. Operations and receives share the main CQ unless there is a receive
 * CQ. One completion of each kind that was polled from a shared CQ may be kept here until a
 * call waits for that kind.
 */
struct completions {
    struct rpma_conn *conn;
    struct rpma_cq *cq[2]; /* by kind */
    bool shared_channel;
    bool waiting[2]; /* by kind: wc was polled from the CQ and is kept */
    struct ibv_wc wc[2];
};

/* srq: the connection's shared receive queue, or NULL. */
struct completions completions_of(struct rpma_conn *conn, struct rpma_srq *srq,
                                  bool shared_channel);

/* Waits for the next completion of that kind, and fails unless it is successful. */
struct ibv_wc await_operation(struct completions *completions);
struct ibv_wc await_receive(struct completions *completions);

/* Polls for one completion: false if there is none. Fails if its status is an error. */
bool poll_completion(struct rpma_cq *cq, struct ibv_wc *wc);

/* Waits for one completion of a CQ that has its own completion channel. */
struct ibv_wc await_completion(struct rpma_cq *cq);

#endif /* EXAMPLES_COMMON_H */
