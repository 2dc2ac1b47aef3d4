// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// strict.hh -- the objects of a program that runs with --strict, and reports of their misuse

#pragma once

#include <cstddef>
#include <cstdint>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "preload.hh"
#include "strict_checks.hh"

enum class Check {
#define NAME(name, ...) name,
    STRICT_CHECKS(NAME)
#undef NAME
        COUNT
};

enum class Kind {
    CONTEXT,
    CHANNEL,
    PD,
    MR,
    CQ,
    SRQ,
    QP,
    AH,
    EVENT_CHANNEL,
    ID,
    EVENT, // of the connection manager
    COUNT
};

// A posted request that the program knows not to have completed.
struct Posted {
    static constexpr unsigned MOST = 8; // SGEs whose keys are kept
    uint64_t wr_id;
    bool is_signaled;
    unsigned sges;
    uint32_t keys[MOST];
};

// The requests of a queue in their order.
struct Queue {
    Posted *all = nullptr;
    size_t first = 0, count = 0, room = 0;
    Posted &at(size_t i) { return all[(first + i) % room]; }
    void add(const Posted &posted);
    void remove_first() { first = (first + 1) % room, count--; }
};

struct Object {
    uint64_t key;
    Object *next; // with the same hash
    Kind kind;
    bool is_dead, is_internal;  // is_internal: librdmacm has created it
    const void *created;        // the address of the call
    const char *creator;        // its function
    Object *used[5];            // a PD, CQs and the like
    unsigned users, events;     // events: received and not acknowledged
    unsigned pending;           // CQ: completions of posted requests; MR: SGEs of them
    uint64_t begin, length;     // MR
    unsigned access;            // MR
    ibv_qp_cap cap;             // QP
    bool signals_all, is_known; // is_known: all completions of the CQ are seen
    bool is_bound;              // ID
    Queue sends, receives;      // QP, SRQ
};

// Threads of the program share all objects. It is held for a short time, and never during a
// call of libibverbs.
class Lock {
  public:
    Lock();
    ~Lock();
    Lock(const Lock &) = delete;
    Lock &operator=(const Lock &) = delete;
};

inline uint64_t key_of(const void *pointer) {
    return reinterpret_cast<uint64_t>(pointer);
}
// No address has these bits.
inline uint64_t key_of_qp(uint32_t number) {
    return uint64_t{1} << 63 | number;
}
inline uint64_t key_of_region(uint32_t lkey) {
    return uint64_t{1} << 62 | lkey;
}

Object *find(uint64_t key); // also a dead one; NULL: not known
// The object of the pointer; NULL unless it is known and alive.
Object *find(const void *pointer);
Object *alias(uint64_t key); // that of add_alias(), or NULL
void add_alias(uint64_t key, Object *object);
void remove_alias(uint64_t key);
void for_each(void (*function)(Object &, void *), void *argument); // of those that are alive

// The function of the library, which a program may have loaded by dlopen(): then it is not
// next.
inline void *function_of(const char *library, const char *name) {
    if (void *const next = dlsym(RTLD_NEXT, name))
        return next;
    void *const loaded = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    return loaded == nullptr ? nullptr : dlsym(loaded, name);
}
#define ORIGINAL(library, name)                                             \
    ([] {                                                                   \
        static auto *const function =                                       \
            reinterpret_cast<decltype(&name)>(function_of(library, #name)); \
        return function;                                                    \
    }())
#define VERBS(name) ORIGINAL("libibverbs.so.1", name)
#define CM(name) ORIGINAL("librdmacm.so.1", name)

struct Call {
    const char *function;
    const void *caller; // the return address
};
#define CALL                                  \
    Call {                                    \
        __func__, __builtin_return_address(0) \
    }

Object *add(Kind kind, const void *pointer, const Call &call);
void use(Object *user, const void *used);         // no effect if it is not known
void use_instead(Object *user, const void *used); // of the first one
void remove(Object *object);
const char *name_of(Kind kind);

// Reports a misuse once for each check and place. The format names the misuse.
void report(Check check, const Call &call, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// Returns false, and reports that it was destroyed before.
bool is_usable(Kind kind, const void *pointer, const Call &call);
// Returns false if the object must not be destroyed.
bool may_destroy(Kind kind, const void *pointer, const Call &call);
void watch(ibv_context *context); // replaces its inline functions

// strict_requests.cc
void watch_requests(ibv_context *context); // a part of watch()
void clear(Queue &queue, Object *cq);      // completes all requests of the queue
// Reports the requests of queue pairs that use the region.
void check_posted(const ibv_mr *mr, const Call &call);

// Adds an object that uses others, unless it is NULL; returns it.
template <class T, class... Used>
T *add_user(Kind kind, T *object, const Call &call, const Used *...used) {
    const Lock lock;
    if (Object *const made = add(kind, object, call))
        (use(made, used), ...);
    return object;
}

// The result of a function that destroys the object.
template <class Function>
int destroy(Kind kind, const void *pointer, const Call &call, Function function) {
    {
        const Lock lock;
        if (!may_destroy(kind, pointer, call))
            return EINVAL;
    }
    const int error = function();
    const Lock lock;
    if (Object *const object = error ? nullptr : find(pointer))
        remove(object);
    return error;
}
