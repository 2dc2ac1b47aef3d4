// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// internal.h -- what the fakes share among themselves: objects, the record, the lock.

#ifndef FAKE_INTERNAL_H
#define FAKE_INTERNAL_H 1

#include "fake.h"

#include <netdb.h>

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

// Head of every object. The newest dead ones stay in memory, so that a use after release is
// seen and named instead of being undefined.
struct fake_object {
    struct fake_object *next;
    enum fake_kind kind;
    bool dead;
    bool refused;      // a fault refused its release
    bool internal;     // made by the fakes for themselves
    const void *outer; // the structure that the library sees
    void *page;        // its pages, if its release makes them unreadable; or NULL
    size_t bytes_of_page;
    size_t bytes;
    unsigned children;         // live objects that depend on this one
    unsigned refused_children; // those of them whose release was refused
    unsigned unacked_async;    // events of the device about it that were taken
};

struct fake_queue { // events that wait behind a descriptor
    int fd;
    struct fake_node {
        struct fake_node *next;
        void *what;
    } * first, **end;
};

struct fake_mr {
    struct fake_object object;
    struct ibv_mr mr;
    unsigned access;
    struct fake_object *pd;
};

struct fake_comp_channel {
    struct fake_object object;
    struct ibv_comp_channel channel;
    struct fake_queue queue; // of struct fake_cq
};

struct fake_cq {
    struct fake_object object;
    struct ibv_cq cq;
    struct fake_comp_channel *channel;
    bool armed, armed_solicited;
    unsigned unacked;
    struct ibv_wc wc[64];
    unsigned wc_first, wc_count;
};

struct fake_srq {
    struct fake_object object;
    struct ibv_srq srq;
    uint32_t max_sge;
    uint32_t receives, max_receives; // posted; the fakes never consume one
    uint32_t limit;
    struct fake_object *pd;
};

// Laid out as in rdma-core >= 45, also with older headers, which end before wr_flush.
struct fake_qp_ex {
    struct ibv_qp_ex ex;
#ifndef FAKE_HEADERS_KNOW_FLUSH
    void (*wr_flush)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t len,
                     uint8_t type, uint8_t level);
#endif
};

struct fake_qp {
    struct fake_object object;
    struct fake_qp_ex qp; // its base is what the library sees
    bool extended;
    enum ibv_qp_state state;
    uint32_t sends;                  // posted since fake_forget()
    uint32_t receives, max_receives; // posted; the fakes never consume one
    struct ibv_qp_cap cap;           // the actual sizes of the queues
    bool building;                   // between ibv_wr_start() and ibv_wr_complete()
    int build_error;                 // error of a request refused since ibv_wr_start()
    unsigned built;                  // requests since ibv_wr_start()
    struct fake_post *pending;       // these requests
    struct fake_object *pd, *srq;
    struct fake_cq *send_cq, *recv_cq;
};

// Linux 7.3, drivers/infiniband/sw/rxe/rxe_param.h
enum { FAKE_MAX_BUILT = 128 };

extern struct fake_device fake_device_state;
uint32_t fake_slots(uint32_t wanted); // the actual size of a queue
uint64_t fake_flush_caps(void);       // that the device reports

// One lock for the state of all fakes, released at the end of the scope.
int fake_lock(void);
void fake_unlock(const int *unused);
#define FAKE_RELEASED __attribute__((cleanup(fake_unlock), unused)) const int fake_guard
#define FAKE_LOCKED FAKE_RELEASED = fake_lock()
bool fake_is_quiet(void);
// Gives the lock up until another thread has brought the count to 0 and says so.
void fake_wait_for_zero(const unsigned *count);
void fake_acknowledged(void);

// The same for the data path. In tests with threads ThreadSanitizer sees neither this lock,
// which would order threads that a device does not, nor what the fakes do while they hide.
int fake_data_lock(void);
void fake_data_unlock(const int *unused);
int fake_hide(void);
void fake_show(const int *unused);
#define FAKE_DATA_LOCKED \
    __attribute__((cleanup(fake_data_unlock), unused)) const int fake_guard = fake_data_lock()
#define FAKE_HIDDEN \
    __attribute__((cleanup(fake_show), unused)) const int fake_hiding = fake_hide()

// Records the call and applies a fault that is due; the caller fills in the arguments.
struct fake_call *fake_enter(const char *name, const void *object);
// The same for calls that cannot fail.
struct fake_call *fake_note(const char *name, const void *object);
void fake_misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Reads every byte, so that memcheck reports uninitialized ones.
void fake_touch(const void *bytes, size_t len);

void *fake_create(enum fake_kind kind, size_t size, size_t outer_offset);
// Puts the outer structure on pages of its own, which fake_destroy() makes unreadable.
void *fake_give_page(struct fake_object *object, size_t size);
// The live object of a pointer that the library passed; NULL and a misuse when there is none.
void *fake_find(enum fake_kind kind, const void *outer, const char *call);
struct fake_object *fake_first(void); // of the live ones, newest first
void fake_destroy(struct fake_object *object);
void fake_adopt(struct fake_object *parent);
void fake_release(struct fake_object *parent, struct fake_object *child);
// Notes that a fault refused the release of object; parents may be NULL.
int fake_refuse(struct fake_object *object, int error, struct fake_object *parent);
// Returns EBUSY when children are alive, otherwise 0. ours: the library has to keep the order
// of release, so a child that it did not try to release is a misuse.
int fake_busy(struct fake_object *object, const char *call, bool ours);

int fake_queue_open(struct fake_queue *queue);
void fake_queue_close(struct fake_queue *queue);
void fake_queue_push(struct fake_queue *queue, void *what);
// Waits without the lock, unless the descriptor has O_NONBLOCK, and returns the first event
// with the lock held: FAKE_RELEASED. NULL and no lock if the wait fails (errno).
void *fake_queue_take(struct fake_queue *queue);
void *fake_queue_remove(struct fake_queue *queue, bool (*match)(void *what, void *with),
                        void *with);

// Opens the descriptor of the events of a device.
int fake_async_open(int number);
// No object and no event of the devices is left.
void fake_async_reset(void);
// What the destruction of an object does with the events of the device about it.
void fake_async_forget(struct fake_object *object, const char *call);

struct ibv_qp *fake_qp_create(struct ibv_qp_init_attr_ex *attr, struct ibv_context *context);
int fake_qp_destroy(struct ibv_qp *qp, const char *call);
void fake_qp_set_native(struct fake_qp *qp, uint64_t send_ops_flags);
struct fake_qp *fake_qp_of(struct ibv_qp *qp);
// Appends to the inline data of a post, as far as there is room.
void fake_copy_inline_data(struct fake_post *to, const void *bytes, size_t length);
bool fake_is_atomic(int opcode);
// Whether the device writes to the local memory of such a request.
bool fake_writes_elements(int opcode);
void fake_faults_reset(void);
bool fake_fault_asked(const char *name, int *error);
// Records that the send queue accepted the request.
void fake_take(struct fake_qp *qp, const struct fake_post *post);
void fake_take_receive(const struct fake_receive *receive);
// Executes the request if a test made memory of a target.
void fake_execute(struct fake_qp *qp, const struct fake_post *post);
void fake_target_reset(void);
void fake_alloc_reset(void);
extern void (*fake_cm_reset)(void);

int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int fake_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
// Every element must lie in a live region of the domain, which the device may write if it has
// to.
void fake_copy_elements(struct fake_elements *to, const char *call, const struct ibv_pd *pd,
                        bool is_written, const struct ibv_sge *sges, int num_sge);
int fake_poll_cq(struct ibv_cq *cq, int number, struct ibv_wc *wc);
int fake_req_notify_cq(struct ibv_cq *cq, int solicited_only);

// ---- names ---------------------------------------------------------------------------------

// The address of that number: 127.0.0.1 and up, every second one as IPv6.
void fake_number_address(struct sockaddr_storage *addr, socklen_t *len, int number);
int fake_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                     struct addrinfo **res);
void fake_freeaddrinfo(struct addrinfo *res);

#endif // FAKE_INTERNAL_H
