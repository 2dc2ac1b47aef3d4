/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rdma-sim developers */

/* rdma-sim.h -- the simulated fabric in the process of a test: rdma-sim-test(7)
 *
 * Link with the flags of "pkg-config --libs rdma-sim": libibverbs.so.1 and librdmacm.so.1 are
 * then those of rdma-sim. There is one fabric in a process. Its time is virtual: it is 0 at the
 * start and advances only by rdma_sim_advance(), so the same calls have the same results.
 *
 * Errors: each function returns 0, or an error number of errno.h, and then it has changed
 * nothing. errno is unchanged.
 * Ownership: each function copies its arguments. The objects of libibverbs and librdmacm belong
 * to their host, and end with the fabric.
 * Threads: rdma_sim_use_host() and rdma_sim_error() are of the calling thread. Any thread may
 * call rdma_sim_advance() and rdma_sim_fault() at any time. No other thread may use the fabric
 * while one starts or ends it. A child of fork() must not use it.
 */

#ifndef RDMA_SIM_H
#define RDMA_SIM_H 1

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A member that is 0 has its default. */
struct rdma_sim_options {
    unsigned hosts;     /* their number, 1 to 254; default: 2. host N has 10.77.0.N, fd77::N */
    const char *device; /* of each host: a name of "rdma-sim --device help"; default: rxe */
    uint64_t seed;      /* of random choices; default: 1 */
    const char *strong; /* weaknesses to turn off, as of "rdma-sim --strong"; default: none */
};

/* Starts a fabric; NULL is all defaults. The calling thread is on host 1.
 *   EBUSY    a fabric exists already
 *   EINVAL   the number of hosts is above 254, or there is no such weakness
 *   ENODEV   there is no such device
 *   ENOTSUP  the device does not have the weakness
 *   EIO      the system refuses a descriptor or memory: see rdma_sim_error() */
int rdma_sim_start(const struct rdma_sim_options *options);

/* Ends the fabric with all objects of its hosts. The program must have closed its devices,
 * connections and channels before: their memory is not freed, and their calls fail later.
 *   ENOENT   there is no fabric */
int rdma_sim_end(void);

/* Selects the host of the next calls of this thread, 1 to `hosts`. An object can be used only
 * on the host that created it.
 *   ENOENT   there is no fabric
 *   ERANGE   there is no such host */
int rdma_sim_use_host(unsigned host);

/* Lets time pass: messages with a delay arrive, time limits end, and faults occur that are
 * due. Without a delay or a fault, each request is executed in the call that posts it.
 *   ENOENT   there is no fabric
 *   ERANGE   the time would exceed 2^64 - 1 nanoseconds */
int rdma_sim_advance(uint64_t nanoseconds);

/* Adds a fault in the syntax of --fault of rdma-sim(1), such as "5ms cut host1 host2 for 1s" or
 * "host2:ibv_reg_mr:3 fail ENOMEM". A time counts from this call. Without a time and a call, as
 * in "cut host1 host2", it occurs at once. A program of rdma_sim_explore() adds faults to those
 * of its schedule; these may also be kill, freeze, thaw, power-off and power-on.
 *   ENOENT   there is no fabric
 *   EINVAL   the text is not a fault
 *   ERANGE   there is no such host
 *   ENOTSUP  the device cannot have it, or it needs what only rdma-sim has: programs (kill,
 *            freeze, thaw, power-off, power-on, "after HOST") or their clocks (clock-ahead) */
int rdma_sim_fault(const char *fault);

/* A program of a test, on one host. */
struct rdma_sim_program {
    unsigned host;              /* 1 to `hosts` */
    int (*run)(void *argument); /* returns 0, or another status if it fails */
    void *argument;
    const char *name; /* in findings; default: "hostN" */
};

/* Memory of a host that survives a power failure where it was flushed: by a persistent flush,
 * by what the `platform` of the test permits, or by rdma_sim_persist(). Each other word that
 * was written has its last persistent value afterwards, or any later one. `address` is a
 * multiple of 8. All programs of the host may use the memory. */
struct rdma_sim_memory {
    unsigned host;
    void *address;
    size_t size;
    unsigned flags;
};

/* Only rdma_sim_persist() makes it persistent: the device writes into caches that a power
 * failure clears, or the memory is a file in the page cache. */
#define RDMA_SIM_MEMORY_NO_DIRECT_WRITE 1
/* A word that is not persistent can survive in part. */
#define RDMA_SIM_MEMORY_TEARS 2

struct rdma_sim_test {
    struct rdma_sim_options options; /* `seed` is that of the first schedule */
    const struct rdma_sim_program *programs;
    unsigned program_count;
    const char *(*check)(void *argument); /* returns NULL, or one line about what is wrong */
    void *argument;                       /* of check() */
    uint64_t schedules;                   /* their number; default: 1000 */
    /* Kinds, as of "rdma-sim explore --faults"; "all"; default: "none". */
    const char *faults;
    const char
        *search; /* as of "rdma-sim explore --search": KIND[:CHOICES]; default: "mixed" */
    const struct rdma_sim_memory *memories;
    unsigned memory_count;
    const char *platform; /* as of "rdma-sim --platform"; default: "direct-write" */
    unsigned flags;
    unsigned shortening; /* schedules that shorten a finding, at most; default: 1000 */
};

/* A program that ends with status 0 and has not destroyed all its objects is a finding, but not
 * one that leaves a device open. */
#define RDMA_SIM_TEST_LEAKS 1
/* Programs that recover from faults: no fault lasts for ever, and programs that do not end
 * after the last one are a finding. */
#define RDMA_SIM_TEST_RECOVERS 2

#define RDMA_SIM_FOUND (-1)

/* Runs the programs in many schedules, which differ in the order of their calls, in the time of
 * messages, in the weaknesses of the device and in faults. Each schedule runs in a child of
 * this process; the programs are coroutines of one thread, with stacks of their own. A finding
 * is a program that fails although no fault has occurred, a signal, an endless wait or a failed
 * check(), which is called in the child after the last program, and after a power failure in
 * some schedules. It is shortened, and its steps are printed to stderr. The result is then
 * RDMA_SIM_FOUND, and rdma_sim_error() describes the finding, with the seed that repeats it.
 * The faults kill and power-off end programs, whose variables keep their values, and run them
 * again if they have a duration. In a program, rdma_sim_advance() is a wait. A program may wait
 * only in it, in rdma_sim_poll(), rdma_sim_epoll_wait(), and in functions of libibverbs and
 * librdmacm.
 *   EBUSY    a fabric exists
 *   EINVAL   the test has no program, or a program without a function; there is no such
 *            fault, search or platform; a memory is empty, or its address is no multiple of 8
 *   ERANGE   there is no such host
 *   ENOTSUP  no host of a test can have the fault, or the device lacks the weakness
 *   ENODEV   there is no such device
 *   EIO      the system refuses a descriptor, memory or a process */
int rdma_sim_explore(const struct rdma_sim_test *test);

/* A program calls it after it has flushed its stores to a rdma_sim_memory from the caches.
 *   ENOENT   no program of rdma_sim_explore() calls it */
int rdma_sim_persist(const void *address, size_t size);

/* Returns 0 if each power failure at this moment leaves the present content of the range, which
 * a program must be sure of before it reports the content as safe.
 *   ENODATA  a power failure can change it, or it is in no memory of the test: rdma_sim_error()
 *            has the first such address
 *   ENOENT   no program of rdma_sim_explore() calls it */
int rdma_sim_check_persistent(const void *address, size_t size);

/* Gives a value that the word at `address`, a multiple of 8, may have after a power failure at
 * this moment: number 0 is the persistent one, the next ones are those that were written since,
 * in their order. A value may be repeated. A word that can survive in part has further values.
 *   ENODATA  there are fewer values, or the word is in no memory of the test
 *   ENOENT   no program of rdma_sim_explore() calls it */
int rdma_sim_possible_value(const void *address, unsigned number, uint64_t *value);

/* Returns a random number for a program: the seed of the schedule, the program and the number
 * of its calls determine it. Elsewhere it is a number of getrandom(2). */
uint64_t rdma_sim_random(void);

/* clock_gettime(2) for a program, in the time of the fabric: each clock is at 1000 s at the
 * start of a schedule. Elsewhere it is clock_gettime(). */
struct timespec;
int rdma_sim_clock_gettime(int clock, struct timespec *time);

/* poll(2) and epoll_wait(2) for a program, in the time of the fabric. Elsewhere they are poll()
 * and epoll_wait(). Sources of programs can be compiled with -Dpoll=rdma_sim_poll,
 * -Depoll_wait=rdma_sim_epoll_wait and -Dclock_gettime=rdma_sim_clock_gettime. */
struct pollfd;
int rdma_sim_poll(struct pollfd *descriptors, unsigned long count, int milliseconds);
struct epoll_event;
int rdma_sim_epoll_wait(int epoll, struct epoll_event *events, int maximum, int milliseconds);

/* Ends the program that calls it. Elsewhere it is exit(). */
__attribute__((noreturn)) void rdma_sim_exit(int status);

/* Returns one line about the last failure of a function above in this thread, or "". The text
 * is valid until the next call of one of them in this thread. */
const char *rdma_sim_error(void);

#ifdef __cplusplus
}
#endif

#endif
