// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// cm.c -- event channels of librdmacm, CM IDs and their events.

#include "internal.h"

#include <errno.h>
#include <string.h>

struct rdma_event_channel *rdma_create_event_channel(void) {
    FAKE_CALL(NULL);
    return call->failed ? fake_return_null(call, EINVAL)
                        : &fake_channel_new(FAKE_EVENT_CHANNEL)->of_ids;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel) {
    FAKE_LOCKED;
    fake_note(__func__, channel);
    struct fake_channel *found = fake_find(FAKE_EVENT_CHANNEL, channel);
    if (!found)
        return;
    fake_has_users(&found->object);
    fake_destroy(found);
}

// Attaches the ID to the channel, or to one of its own if channel is NULL.
static void attach_to_channel(struct fake_id *id, struct fake_channel *channel) {
    id->channel = channel;
    id->own = channel ? NULL : fake_channel_new(FAKE_EVENT_CHANNEL);
    fake_adopt(&id->object, channel);
    if (id->own)
        id->own->object.internal = true;
    id->id.channel = &(channel ? channel : id->own)->of_ids;
}

static bool belongs(void *what, void *with) {
    const struct fake_cm_event *event = what;
    return event->seen->event.id == &((struct fake_id *)with)->id;
}

static struct fake_channel *channel_of(const struct fake_id *id) {
    return id->channel ? id->channel : id->own;
}

// Detaches the ID from a channel. Its events move to another channel; without one they are
// dropped.
static void leave(struct fake_id *id, struct fake_channel *from, struct fake_channel *to) {
    struct fake_cm_event *event;
    while ((event = fake_queue_remove(&from->queue, belongs, id)))
        if (to)
            fake_queue_push(&to->queue, event);
    if (from->object.internal)
        fake_destroy(from);
    else
        fake_abandon(&id->object, from);
}

struct fake_id *fake_id_new(struct fake_channel *channel) {
    struct fake_id *made = FAKE_NEW(FAKE_ID, struct fake_id, id);
    if (fake_device()->infiniband)
        made->id.route.addr.addr.ibaddr.sgid.global.subnet_prefix = 0x80fe; // fe80::
    attach_to_channel(made, channel);
    return made;
}

// rdma-core 56, librdmacm/cma.c, ucma_alloc_id(): without a channel the ID gets its own, and
// its calls block until they complete.
int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
                   enum rdma_port_space ps) {
    FAKE_CALL(NULL);
    call->channel = channel;
    if (ps != RDMA_PS_TCP)
        fake_misuse("port space %d", ps);
    struct fake_channel *parent = channel ? fake_find(FAKE_EVENT_CHANNEL, channel) : NULL;
    if (call->failed)
        return fake_answer(call, EINVAL);
    struct fake_id *made = fake_id_new(parent);
    (void)context;
    *id = &made->id;
    return 0;
}

// rdma-core 56, librdmacm/cma.c, rdma_destroy_id() and rdma_migrate_id(): wait until all
// reported events are acknowledged.
static void wait_for_acknowledgements(const struct fake_id *id) {
    if (id->unacked)
        fake_misuse("%u events are not acknowledged, it would block for ever", id->unacked);
}

// rdma-core 56, librdmacm/cma.c, rdma_destroy_id(): drops pending events, and does not destroy
// the queue pair. The kernel rejects a pending request (Linux 7.3, drivers/infiniband/core:
// cm.c, cm_destroy_id(), and iwcm.c, destroy_cm_id()); in the fakes this is a misuse, because
// librpma promises to reject the request itself.
int rdma_destroy_id(struct rdma_cm_id *id) {
    FAKE_ID_CALL(id);
    if (!found)
        return fake_refused(EINVAL);
    wait_for_acknowledgements(found);
    if (id->qp)
        fake_misuse("the ID still has a QP");
    if (call->failed)
        return fake_refused(fake_refuse(&found->object, call->error));
    if (found->state == SIM_CM_REQ_RECEIVED)
        fake_misuse("an incoming request was neither accepted nor rejected");
    leave(found, channel_of(found), NULL);
    fake_destroy(found);
    return 0;
}

int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel) {
    FAKE_ID_CALL(id);
    call->channel = channel;
    struct fake_channel *to = channel ? fake_find(FAKE_EVENT_CHANNEL, channel) : NULL;
    // rdma-core 56, librdmacm/cma.c, rdma_migrate_id(): refuses to move a synchronous ID
    // without a new channel.
    if (!found || call->failed || (!found->channel && !to))
        return fake_answer(call, EINVAL);
    wait_for_acknowledgements(found);
    struct fake_channel *from = channel_of(found);
    attach_to_channel(found, to);
    leave(found, from, channel_of(found));
    return 0;
}

// ---- events --------------------------------------------------------------------------------

// rdma-core 56, librdmacm/cma.c, rdma_get_cm_event(): a connect request creates a new ID on
// the channel of the listener, and its event counts for the listener
// (ucma_process_conn_req()). The kernel returns the addresses of the new ID
// (ucma_query_req_info()).
int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event) {
    struct fake_cm_event *taken = fake_queue_take(__func__, channel, FAKE_EVENT_CHANNEL, NULL);
    if (!taken)
        return -1;
    FAKE_RELEASED = NULL;
    struct fake_id *id = taken->counting_id;
    struct rdma_cm_event *seen = *event = &taken->seen->event;
    taken->object.internal = false; // the library has to acknowledge it
    id->unacked++;
    if (seen->event == RDMA_CM_EVENT_CONNECT_REQUEST && id->state == SIM_CM_LISTENING) {
        struct fake_id *child = fake_id_new(id->channel);
        child->state = SIM_CM_REQ_RECEIVED;
        child->id.verbs = fake_context(fake_device()->other_device);
        fake_number_address(&child->id.route.addr.dst_storage, fake_device()->client);
        child->id.route.addr.src_storage = id->id.route.addr.src_storage;
        seen->listen_id = &id->id;
        seen->id = &child->id;
    }
    // rdma-core 56, librdmacm/cma.c, ucma_process_addr_resolved(): queries the device
    if (seen->event == RDMA_CM_EVENT_ADDR_RESOLVED)
        fake_bind_to_device(id);
    // rdma-core 56, librdmacm/cma.c, ucma_process_conn_resp(): moves the QP to RTS
    struct ibv_qp *qp = seen->id->qp;
    if (seen->event == RDMA_CM_EVENT_ESTABLISHED && qp && qp->state == IBV_QPS_INIT)
        fake_qp_connect(qp);
    return 0;
}

// rdma-core 56, librdmacm/cma.c, rdma_ack_cm_event(): counts and frees the event, and fails
// only for NULL. Its manual page mentions failures, so a fault may cause one; the library
// cannot acknowledge the event again after such a failure.
int rdma_ack_cm_event(struct rdma_cm_event *event) {
    FAKE_CALL(event);
    struct fake_cm_event *found = fake_find(FAKE_CM_EVENT, event);
    if (!found)
        return fake_refused(EINVAL);
    if (!found->object.refused)
        found->counting_id->unacked--;
    if (call->failed)
        return fake_refused(fake_refuse(&found->object, call->error));
    fake_destroy(found);
    return 0;
}

// ---- functions for tests -------------------------------------------------------------------

static struct fake_id *newest_id_on(const struct fake_channel *channel, unsigned *count) {
    struct fake_id *newest = NULL;
    *count = 0;
    for (struct fake_id *id = NULL; channel && (id = fake_next(FAKE_ID, id));)
        if (id->channel == channel && (*count)++ == 0)
            newest = id;
    return newest;
}

unsigned fake_ids_on(int fd) {
    FAKE_LOCKED;
    unsigned count;
    newest_id_on(fake_channel_on(FAKE_EVENT_CHANNEL, fd), &count);
    return count;
}

unsigned fake_pending_on(int fd) {
    FAKE_LOCKED;
    const struct fake_channel *channel = fake_channel_on(FAKE_EVENT_CHANNEL, fd);
    return channel ? channel->queue.count : 0;
}

static uint8_t length_seen(const struct fake_id *id, enum rdma_cm_event_type type,
                           uint8_t len) {
    if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
        return sim_received_data(fake_profile(), SIM_REQUEST, len);
    if (type == RDMA_CM_EVENT_ESTABLISHED && id->state != SIM_CM_REP_SENT)
        return sim_received_data(fake_profile(), SIM_REPLY, len);
    if (type == RDMA_CM_EVENT_REJECTED)
        return sim_received_data(fake_profile(), SIM_REJECTION, len);
    return fake_profile()->transport == SIM_IWARP ? len : 0;
}

static void add_event(struct fake_id *id, enum rdma_cm_event_type type, int status,
                      const void *data, uint8_t len) {
    // Linux 7.3, drivers/infiniband/core/ucma.c, ucma_event_handler(): no event before
    // rdma_accept().
    if (id->state == SIM_CM_REQ_RECEIVED && type != RDMA_CM_EVENT_CONNECT_REQUEST)
        fake_misuse("an incoming request has no events until it is accepted");
    struct fake_cm_event *made = FAKE_NEW(FAKE_CM_EVENT, struct fake_cm_event, seen);
    struct fake_cm_event_seen *seen = fake_allocate_page(&made->object, sizeof(*seen));
    made->object.internal = true; // until the library takes it
    made->seen = seen;
    made->counting_id = id;
    const uint8_t length = length_seen(id, type, len);
    id->state = sim_cm_state_after(id->state, type);
    seen->event = (struct rdma_cm_event){.id = &id->id, .event = type, .status = status};
    seen->event.param.conn.private_data = length ? seen->data : NULL;
    seen->event.param.conn.private_data_len = length;
    if (length > 0 && len > length)
        fake_misuse("%u bytes of private data do not fit", len);
    else if (length > 0 && len > 0)
        memcpy(seen->data, data, len);
    fake_queue_push(&id->channel->queue, made);
}

void fake_report_event(struct fake_id *id, enum rdma_cm_event_type type, int status) {
    add_event(id, type, status, NULL, 0);
}

void fake_cm_event_status(int fd, enum rdma_cm_event_type type, int status, const void *data,
                          uint8_t len) {
    FAKE_LOCKED_FOR("fake_cm_event");
    unsigned count;
    struct fake_id *id = newest_id_on(fake_channel_on(FAKE_EVENT_CHANNEL, fd), &count);
    if (id)
        add_event(id, type, status, data, len);
    else
        fake_misuse("no CM ID on that descriptor");
}

void fake_cm_event(int fd, enum rdma_cm_event_type type, const void *data, uint8_t len) {
    fake_cm_event_status(fd, type, 0, data, len);
}
