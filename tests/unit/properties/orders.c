// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// orders.c -- runs threads in every order of their accesses to shared variables
//
// librpma is compiled with interleaving/atomic. The threads are contexts of one thread; each
// access to an atomic that several threads use, and at least one writes, may switch to another
// thread. The outcome must equal the outcome of some order of complete calls.
//
// A load may return an old value, unless its memory order or the order of the store forbids
// it: the model has the views of "A Promising Semantics for Relaxed-Memory Concurrency" (POPL
// 2017) without promises, so a load is never reordered with a later store. Loads of plain
// memory of the library and of the fakes always return the newest value.

#include "orders.h"

#include <malloc.h>
#include <stdio.h>
#include <ucontext.h>

enum { MAX_VARIABLES = 64, MAX_WRITES = 32, MAX_CHOICES = 128 };

static char outcome[1024];

// The known write of each variable: earlier writes cannot be read any more.
struct view {
    unsigned char known[MAX_VARIABLES];
};

// ---- the scheduler -------------------------------------------------------------------------

static struct thread {
    ucontext_t context;
    void (*work)(void);
    pthread_mutex_t *waits_for;
    struct view view;
    bool ended;
} threads[THREADS], *running;
static ucontext_t scheduler;
// Memcheck interprets a jump of more than 2 MB as another stack.
static unsigned char stacks[THREADS][4 << 20];

// A variable remains shared in all later orders; the other members belong to the current
// order. A variable in the connection is identified by its offset, because under memcheck a
// new connection never has the address of the previous one.
static struct variable {
    const void *address;
    unsigned by;
    bool is_written, is_shared;
    unsigned count; // of writes; the first is the initial value
    struct write {
        uint64_t value;
        unsigned position; // in the modification order of the variable
        bool modifies;     // no write may be inserted directly before it
        struct view view;  // the view that a load with acquire joins
    } writes[MAX_WRITES];
} variables[MAX_VARIABLES];
static struct view sequential; // the view of loads and stores with seq_cst
static bool found_more;

static struct choice { unsigned chosen, of; } choices[MAX_CHOICES];
static unsigned choice_count, depth;

static void switch_thread(void) {
    const int error = errno;
    swapcontext(&running->context, &scheduler);
    errno = error;
}

static struct variable *variable_of(const void *address) {
    const size_t in_conn = (uintptr_t)address - (uintptr_t)w.h.conn;
    if (in_conn < malloc_usable_size(w.h.conn))
        address = (void *)(in_conn + 1);
    struct variable *variable = variables;
    while (variable->address && variable->address != address)
        variable++;
    assert_true(variable + 1 < variables + MAX_VARIABLES);
    variable->address = address;
    return variable;
}

void stepped_access(const void *address, bool writes) {
    if (!running)
        return;
    struct variable *variable = variable_of(address);
    variable->by |= 1U << (running - threads);
    variable->is_written |= writes;
    if (variable->is_written && (variable->by & (variable->by - 1)) && !variable->is_shared)
        variable->is_shared = found_more = true;
    if (variable->is_shared)
        switch_thread();
}

static void join(struct view *view, const struct view *other) {
    for (int i = 0; i < MAX_VARIABLES; i++)
        if (variables[i].writes[view->known[i]].position <
            variables[i].writes[other->known[i]].position)
            view->known[i] = other->known[i];
}

static bool acquires(int order) {
    return order != __ATOMIC_RELAXED && order != __ATOMIC_RELEASE;
}
static bool releases(int order) {
    return order >= __ATOMIC_RELEASE;
}

static struct write *write_at(struct variable *variable, unsigned position) {
    struct write *write = variable->writes;
    while (write->position != position)
        write++;
    return write;
}

static struct write *last_write(struct variable *variable, uint64_t value) {
    if (variable->count == 0)
        variable->writes[variable->count++] = (struct write){.value = value};
    return write_at(variable, variable->count - 1);
}

// Returns the position of the oldest write that the thread may still access.
static unsigned oldest_visible(struct variable *variable, int order) {
    const long index = variable - variables;
    const unsigned by_thread = variable->writes[running->view.known[index]].position;
    const unsigned by_all = variable->writes[sequential.known[index]].position;
    return order == __ATOMIC_SEQ_CST && by_thread < by_all ? by_all : by_thread;
}

static void know(const struct variable *variable, const struct write *write, int order) {
    const long index = variable - variables;
    running->view.known[index] = (unsigned char)(write - variable->writes);
    if (order == __ATOMIC_SEQ_CST)
        sequential.known[index] = running->view.known[index];
}

static unsigned choose(unsigned of);

// A new object has this address.
void stepped_made(const void *address) {
    if (!running)
        return;
    struct variable *variable = variable_of(address);
    variable->count = 0;
    for (int i = 0; i < THREADS; i++)
        threads[i].view.known[variable - variables] = 0;
    sequential.known[variable - variables] = 0;
}

uint64_t stepped_load(const void *address, uint64_t latest, int order) {
    if (!running)
        return latest;
    struct variable *variable = variable_of(address);
    const struct write *read = last_write(variable, latest);
    if (variable->is_shared)
        read = write_at(variable, read->position - choose(variable->count -
                                                          oldest_visible(variable, order)));
    know(variable, read, order);
    if (acquires(order))
        join(&running->view, &read->view);
    return read->value;
}

// A write is placed after all writes in the view of its thread, and may be placed before
// others. A read-modify-write reads the last write and inherits its view. Returns the value of
// the last write.
uint64_t stepped_store(const void *address, uint64_t before, uint64_t value, int order,
                       bool modifies) {
    if (!running)
        return value;
    struct variable *variable = variable_of(address);
    const struct write *last = last_write(variable, before);
    struct write made = {.value = value, .position = variable->count, .modifies = modifies};
    if (modifies) {
        made.view = last->view;
        if (acquires(order))
            join(&running->view, &last->view);
    } else if (variable->is_shared) {
        made.position -= choose(variable->count - oldest_visible(variable, order));
        while (made.position < variable->count && write_at(variable, made.position)->modifies)
            made.position++;
    }
    assert_true(variable->count < MAX_WRITES);
    for (unsigned i = 0; i < variable->count; i++)
        variable->writes[i].position += variable->writes[i].position >= made.position;
    struct write *const write = &variable->writes[variable->count++];
    *write = made;
    know(variable, write, order);
    if (releases(order))
        join(&write->view, &running->view);
    write->view.known[variable - variables] = running->view.known[variable - variables];
    return write_at(variable, variable->count - 1)->value;
}

// A thread that locks a mutex joins the view of the previous owner.
static struct view *view_of_lock(pthread_mutex_t *mutex) {
    return &last_write(variable_of(mutex), 0)->view;
}

int stepped_lock(pthread_mutex_t *mutex) {
    stepped_access(mutex, true);
    while (pthread_mutex_trylock(mutex) != 0) {
        running->waits_for = mutex;
        switch_thread();
    }
    if (running)
        join(&running->view, view_of_lock(mutex));
    return 0;
}

int stepped_unlock(pthread_mutex_t *mutex) {
    if (running)
        join(view_of_lock(mutex), &running->view);
    return pthread_mutex_unlock(mutex);
}

static bool can_run(struct thread *thread) {
    if (thread->ended || !thread->work)
        return false;
    if (thread->waits_for) {
        if (pthread_mutex_trylock(thread->waits_for) != 0)
            return false;
        pthread_mutex_unlock(thread->waits_for);
        thread->waits_for = NULL;
    }
    return true;
}

static void run_thread(void) {
    running->work();
    running->ended = true;
}

static void resume(struct thread *thread) {
    running = thread;
    swapcontext(&scheduler, &thread->context);
    running = NULL;
}

// Returns the chosen one of this many alternatives, which is 0 the first time.
static unsigned choose(unsigned of) {
    if (of == 1)
        return 0;
    assert_true(depth < MAX_CHOICES);
    if (depth == choice_count)
        choices[choice_count++] = (struct choice){.of = of};
    assert_int_equal(choices[depth].of, of); // otherwise an order is not reproducible
    return choices[depth++].chosen;
}

static void run_in_order(const struct scenario *s) {
    depth = 0;
    // Forgets variables of a single thread, because under memcheck each new object has another
    // address.
    size_t kept = 0;
    for (struct variable *variable = variables; variable->address; variable++)
        if (variable->is_shared)
            variables[kept++] =
                (struct variable){.address = variable->address, .is_shared = true};
    memset(&variables[kept], 0, (MAX_VARIABLES - kept) * sizeof(*variables));
    memset(&sequential, 0, sizeof(sequential));
    for (int i = 0; i < THREADS; i++) {
        threads[i] = (struct thread){.work = s->threads[i]};
        getcontext(&threads[i].context);
        threads[i].context.uc_stack.ss_sp = stacks[i];
        threads[i].context.uc_stack.ss_size = sizeof(stacks[i]);
        threads[i].context.uc_link = &scheduler;
        makecontext(&threads[i].context, run_thread, 0);
        if (threads[i].work)
            resume(&threads[i]); // up to its first access to a shared variable
    }
    for (;;) {
        struct thread *ready[THREADS];
        unsigned count = 0;
        for (int i = 0; i < THREADS; i++)
            if (can_run(&threads[i]))
                ready[count++] = &threads[i];
        if (count == 0)
            break;
        resume(ready[choose(count)]);
    }
    for (int i = 0; i < THREADS; i++)
        assert_true(threads[i].ended || !threads[i].work); // otherwise there is a deadlock
}

static bool next_order(void) {
    while (choice_count > 0 &&
           choices[choice_count - 1].chosen + 1 == choices[choice_count - 1].of)
        choice_count--;
    if (choice_count == 0)
        return false;
    choices[choice_count - 1].chosen++;
    return true;
}

static void check_outcome(const struct scenario *s) {
    for (int i = 0; i < MAX_ALLOWED && s->allowed[i]; i++)
        if (strcmp(outcome, s->allowed[i]) == 0)
            return;
    char order[MAX_CHOICES + 1] = "";
    for (unsigned i = 0; i < choice_count; i++)
        order[i] = (char)('0' + choices[i].chosen);
    fail_msg("%s, order %s: %s", s->name, order, outcome);
}

void in_every_order(const struct scenario *s) {
    unsigned orders;
    memset(variables, 0, sizeof(variables));
    do {
        found_more = false;
        choice_count = orders = 0;
        do {
            s->begin();
            unit_begin();
            outcome[0] = '\0';
            run_in_order(s);
            s->end();
            check_outcome(s);
            orders++;
        } while (!found_more && next_order());
    } while (found_more);
    print_message("%-40s %5u orders\n", s->name, orders);
    assert_true(orders > 1); // otherwise the threads share no variable
}

void record(const char *format, ...) {
    const size_t used = strlen(outcome);
    va_list values;
    va_start(values, format);
    vsnprintf(outcome + used, sizeof(outcome) - used, format, values);
    va_end(values);
}
