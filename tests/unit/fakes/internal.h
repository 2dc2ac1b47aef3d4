// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// internal.h -- shared by the fakes: objects, the record, the lock.

#ifndef FAKE_INTERNAL_H
#define FAKE_INTERNAL_H 1

#include "fake.h"

#include <limits.h>
#include <netdb.h>
#include <stdio.h>

#define FAKE_LENGTH(array) (sizeof(array) / sizeof((array)[0]))

// ---- the lock, and misuses -----------------------------------------------------------------

// One lock protects the state of all fakes. It is released at the end of the scope. Reports of
// misuses name fake_function, the function that holds it.
extern const char *fake_function;
void *fake_lock(const char *name);
void fake_unlock(void *const *unused);
#define FAKE_RELEASED __attribute__((cleanup(fake_unlock), unused)) void *const fake_guard
#define FAKE_LOCKED_FOR(name) FAKE_RELEASED = fake_lock(name)
#define FAKE_LOCKED FAKE_LOCKED_FOR(__func__)
bool fake_is_quiet(void);
// Waits without the lock until another thread has decremented the count to 0 and has called
// fake_acknowledged().
void fake_wait_for_zero(const unsigned *count);
void fake_acknowledged(void);

// In tests with threads, ThreadSanitizer ignores accesses until the end of the scope, because
// the lock of the data path would order threads that a device does not order.
#ifdef FAKE_THREAD_SANITIZER
int fake_hide(void);
void fake_show(const int *unused);
#define FAKE_HIDDEN \
    __attribute__((cleanup(fake_show), unused)) const int fake_hiding = fake_hide()
#else
#define FAKE_HIDDEN (void)0
#endif

#define fake_misuse(...)                             \
    do {                                             \
        char text_[LINE_MAX];                        \
        snprintf(text_, sizeof(text_), __VA_ARGS__); \
        fake_misuse_text(text_);                     \
    } while (0)
void fake_misuse_text(const char *text);
// Reads every byte, so that memcheck reports uninitialized ones.
void fake_touch(const void *bytes, size_t len);
void fake_copy(void *to, const void *bytes, size_t len); // also copies them

// ---- the record ----------------------------------------------------------------------------

// Records the call and applies a fault that is due; the caller fills in the arguments.
struct fake_call *fake_enter(const char *name, const void *object);
// The same for calls that cannot fail.
struct fake_call *fake_note(const char *name, const void *object);
// Takes the lock and records the call of a function of that name.
#define FAKE_CALL_OF(name, object) \
    FAKE_LOCKED_FOR(name);         \
    struct fake_call *const call = fake_enter(name, object)
#define FAKE_CALL(object) FAKE_CALL_OF(__func__, object)
// Returns the error number of a fault, otherwise refusal. The functions below set errno to an
// error number and return -1 or NULL; fake_answer() returns 0 if there is no error.
int fake_error(const struct fake_call *call, int refusal);
int fake_refused(int error);
int fake_answer(const struct fake_call *call, int refusal);
void *fake_return_null(const struct fake_call *call, int refusal);

void fake_faults_reset(void);
bool fake_fault_due(const char *name, int *error);

// ---- objects -------------------------------------------------------------------------------

enum fake_kind {
    FAKE_DEVICE_LIST,
    FAKE_PD,
    FAKE_MR,
    FAKE_CQ,
    FAKE_COMP_CHANNEL,
    FAKE_QP,
    FAKE_SRQ,
    FAKE_ID,
    FAKE_EVENT_CHANNEL,
    FAKE_NAMES,
    FAKE_ADDRINFO,
    FAKE_CM_EVENT,
    FAKE_BLOCK,
    FAKE_MAPPING,
    FAKE_KINDS
};

// Header of every object. Released objects stay in memory until the next test, so that a use
// after release is reported instead of being undefined.
struct fake_object {
    struct fake_object *next;
    enum fake_kind kind;
    bool refused;      // a fault refused its release
    bool internal;     // made by the fakes for themselves
    const void *outer; // the structure that the library uses
    void *page;        // the page of outer, which fake_destroy() makes unreadable; or NULL
    size_t bytes;
    struct fake_object *parents[4]; // objects that this one depends on
    unsigned children;              // live objects that depend on this one
    unsigned refused_children;      // children whose release was refused
    unsigned unacked_async;         // taken events of the device, not acknowledged
};

// Makes an object of a type whose member outer_ is the structure that the library uses.
#define FAKE_NEW(kind, type, outer_)                  \
    ({                                                \
        type *new_ = fake_create(kind, sizeof(type)); \
        new_->object.outer = &new_->outer_;           \
        new_;                                         \
    })
void *fake_create(enum fake_kind kind, size_t size);
// Puts the outer structure on a page of its own, which fake_destroy() makes unreadable.
void *fake_allocate_page(struct fake_object *object, size_t size);
// The live object of a pointer that the library passed; NULL and a misuse when there is none.
void *fake_find(enum fake_kind kind, const void *outer);
// The next older live object of that kind; after NULL the newest one.
void *fake_next(enum fake_kind kind, const void *object);
// Makes object depend on parent (if any) until object is destroyed.
void fake_adopt(struct fake_object *object, void *parent);
void fake_abandon(struct fake_object *object, void *parent);
void fake_destroy(void *object);
// Notes that a fault refused the release of object.
int fake_refuse(struct fake_object *object, int error);
// Reports a misuse if the library has not tried to release all objects that depend on this one.
void fake_has_users(const struct fake_object *object);
// A call of libibverbs that releases an object. It fails while another object depends on this
// one, which is a misuse if keeps_order is set.
int fake_release(const char *name, enum fake_kind kind, const void *outer, bool keeps_order);

// ---- events on a descriptor ----------------------------------------------------------------

struct fake_queue {
    int fd; // 0: not open
    unsigned count;
    void *all[256];
};

void fake_queue_open(struct fake_queue *queue);
void fake_queue_push(struct fake_queue *queue, void *what);
void *fake_queue_remove(struct fake_queue *queue, bool (*match)(void *what, void *with),
                        void *with);
// Records a call that takes an event of queue, or of the channel's queue if queue is NULL. It
// waits without the lock, unless the descriptor has O_NONBLOCK. It returns the first event with
// the lock held (FAKE_RELEASED releases it), or NULL, errno and no lock.
void *fake_queue_take(const char *name, const void *object, enum fake_kind channel,
                      struct fake_queue *queue);

// A completion channel, or an event channel of librdmacm.
struct fake_channel {
    struct fake_object object;
    struct fake_queue queue; // of struct fake_cq or struct fake_cm_event
    union {
        struct ibv_comp_channel of_cqs;
        struct rdma_event_channel of_ids;
    };
};
struct fake_channel *fake_channel_new(enum fake_kind kind);
struct fake_channel *fake_channel_on(enum fake_kind kind, int fd);

// Opens the descriptor of the events of a device.
int fake_async_open(int number);
// Drops all events of the devices.
void fake_async_reset(void);
// Drops the events of an object that is destroyed; unacknowledged ones are a misuse.
void fake_forget_events(struct fake_object *object);

// ---- verbs ---------------------------------------------------------------------------------

struct fake_mr {
    struct fake_object object;
    struct ibv_mr mr;
    unsigned access;
};

struct fake_cq {
    struct fake_object object;
    struct ibv_cq cq;
    struct fake_channel *channel;
    enum sim_armed armed;
    unsigned unacked;
    struct ibv_wc wc[64];
    int wc_count;
};

// A queue of receives, which the fakes never consume.
struct fake_receives {
    uint32_t posted, max_wr, max_sge;
};

struct fake_srq {
    struct fake_object object;
    struct ibv_srq srq;
    struct fake_receives receives;
    uint32_t limit;
};

// The layout of rdma-core >= 45, also with older headers, which lack wr_flush.
struct fake_qp_ex {
    struct ibv_qp_ex ex;
#ifndef FAKE_HEADERS_KNOW_FLUSH
    void (*wr_flush)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t len,
                     uint8_t type, uint8_t level);
#endif
};

struct fake_qp {
    struct fake_object object;
    struct fake_qp_ex qp; // the library uses its base
    bool extended;
    bool connected; // the connection manager moved it to RTS; the library may see another state
    uint32_t sends; // posted since fake_forget()
    struct fake_receives receives;
    struct ibv_qp_cap cap; // the actual sizes of the queues
};

extern struct fake_device fake_device_state;
void fake_device_reset(void);
struct sim_profile fake_profile_reported(void); // including flush_caps

struct ibv_qp *fake_qp_create(struct ibv_qp_init_attr_ex *attr, struct ibv_context *context);
void fake_qp_set_builders(struct fake_qp *qp, uint64_t send_ops_flags);
struct fake_qp *fake_qp_of(struct ibv_qp *qp);
void fake_qp_connect(struct ibv_qp *qp);
bool fake_can_send(const struct fake_qp *qp);

int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int fake_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int fake_poll_cq(struct ibv_cq *cq, int number, struct ibv_wc *wc);
int fake_req_notify_cq(struct ibv_cq *cq, int solicited_only);

// Every SGE must be within a live region of the domain. If is_written is set, the device must
// have the right to write the region.
void fake_copy_sg_list(struct fake_sg_list *to, const struct ibv_pd *pd, bool is_written,
                       const struct ibv_sge *sges, int num_sge);
// Appends to the inline data of a post, if there is room.
void fake_copy_inline_data(struct fake_post *to, const void *bytes, size_t length);
// The request in the form that the rules of sim/device check.
struct sim_send fake_send_of(const struct fake_post *post);
// Records that the queue accepted the request.
void fake_take(struct fake_qp *qp, const struct fake_post *post);
void fake_take_receive(const struct fake_receive *receive);

// ---- connections and names -----------------------------------------------------------------

struct fake_id {
    struct fake_object object;
    struct rdma_cm_id id;
    struct fake_channel *channel; // NULL: synchronous
    struct fake_channel *own;     // of a synchronous ID
    unsigned unacked;             // events taken and not acknowledged
    enum sim_cm_state state;
    bool has_source_port; // that rdma_resolve_addr() bound
};

// The event that the library gets; freed by its acknowledgement.
struct fake_cm_event_seen {
    struct rdma_cm_event event;
    unsigned char data[256];
};

struct fake_cm_event {
    struct fake_object object;
    struct fake_cm_event_seen *seen;
    struct fake_id *counting_id;
};

// Records the call of a function with a CM ID.
#define FAKE_ID_CALL(id) \
    FAKE_CALL(id);       \
    struct fake_id *const found = fake_find(FAKE_ID, id)

struct fake_id *fake_id_new(struct fake_channel *channel);
void fake_bind_to_device(struct fake_id *id);
// Adds the event that reports the result of resolving an address or a route on a channel.
void fake_report_event(struct fake_id *id, enum rdma_cm_event_type type, int status);

// The address of that number: 127.0.0.1 and up, every second one as IPv6.
socklen_t fake_number_address(struct sockaddr_storage *addr, int number);
void fake_note_name(struct fake_call *call, const char *node, const char *service, int flags);
int fake_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                     struct addrinfo **res);
void fake_freeaddrinfo(struct addrinfo *res);

#endif // FAKE_INTERNAL_H
