// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// calls.c -- the functions of the C library, of libpmem2 and of librpma that a program of an
// example calls
//
// Each program has its own copy. Its variables have their first values at each start.

#include "calls.h"

#include <libpmem2.h>
#include <librpma.h>
#include <rdma-sim.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int this_program;
static char error[256]; // the last one that the program has printed
static unsigned blocks; // that the program and librpma have allocated

int run_example(int argc, char *argv[]); // its main()

int main(int argc, char *argv[]) {
    this_program = atoi(argv[0]);
    const int status = run_example(argc, argv);
    if (!status && blocks > 0)
        report("a program succeeds without freeing its memory");
    return handle_end(this_program, status, error);
}

// -Dexit=end_program
__attribute__((noreturn)) void end_program(int status);
void end_program(int status) {
    rdma_sim_exit(handle_end(this_program, status, error));
}

// ---- output: functions that the linker's --wrap replaces

__attribute__((format(printf, 1, 2))) int __wrap_printf(const char *format, ...);
int __wrap_printf(const char *format, ...) {
    char line[1024];
    va_list values;
    va_start(values, format);
    const int length = vsnprintf(line, sizeof(line), format, values);
    va_end(values);
    handle_line(this_program, line);
    fputs(line, stdout);
    return length;
}

// Only fail() of the examples calls it.
__attribute__((format(printf, 2, 0))) int __wrap_vfprintf(FILE *stream, const char *format,
                                                          va_list values);
int __wrap_vfprintf(FILE *stream, const char *format, va_list values) {
    const int length = vsnprintf(error, sizeof(error), format, values);
    fputs(error, stream);
    return length;
}

// ---- memory

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void __real_free(void *memory);

void *__wrap_malloc(size_t size) {
    void *const memory = __real_malloc(size);
    blocks += memory != NULL;
    return memory;
}

void *__wrap_calloc(size_t count, size_t size) {
    void *const memory = __real_calloc(count, size);
    blocks += memory != NULL;
    return memory;
}

void __wrap_free(void *memory) {
    blocks -= memory != NULL;
    __real_free(memory);
}

// ---- librpma

int __real_rpma_cq_get_wc(struct rpma_cq *cq, int count, struct ibv_wc *wc, int *got);
int __wrap_rpma_cq_get_wc(struct rpma_cq *cq, int count, struct ibv_wc *wc, int *got) {
    const int ret = __real_rpma_cq_get_wc(cq, count, wc, got);
    if (!ret)
        handle_completion(this_program, wc);
    return ret;
}

// ---- libpmem2. The file of a program is a descriptor of the test

static void persist(const void *ptr, size_t size) {
    handle_persist(this_program, ptr, size);
    if (rdma_sim_persist(ptr, size))
        abort();
}

int pmem2_map_new(struct pmem2_map **map, const struct pmem2_config *config,
                  const struct pmem2_source *source) {
    *map = (struct pmem2_map *)memory_of(this_program);
    return 0;
}

// Defines a function that only returns a value.
#define RETURNS(type, function, parameters, value) \
    type function parameters {                     \
        return value;                              \
    }

RETURNS(int, pmem2_source_from_fd, (struct pmem2_source * *source, int fd), 0)
RETURNS(int, pmem2_source_delete, (struct pmem2_source * *source), 0)
RETURNS(int, pmem2_config_new, (struct pmem2_config * *config), 0)
RETURNS(int, pmem2_config_delete, (struct pmem2_config * *config), 0)
RETURNS(int, pmem2_config_set_required_store_granularity,
        (struct pmem2_config * config, enum pmem2_granularity granularity), 0)
RETURNS(int, pmem2_map_delete, (struct pmem2_map * *map), 0)
RETURNS(void *, pmem2_map_get_address, (struct pmem2_map * map), map)
RETURNS(size_t, pmem2_map_get_size, (struct pmem2_map * map), file_size)
RETURNS(enum pmem2_granularity, pmem2_map_get_store_granularity, (struct pmem2_map * map),
        PMEM2_GRANULARITY_CACHE_LINE)
RETURNS(pmem2_persist_fn, pmem2_get_persist_fn, (struct pmem2_map * map), persist)
RETURNS(const char *, pmem2_errormsg, (void), "a failure of libpmem2")
