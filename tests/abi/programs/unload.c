// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// unload.c LIBRARY -- opens and closes the library, as a program with plugins does: nothing of
// it remains loaded, and threads and the log of the program go on

#include "librpma.h"

#include <dlfcn.h>
#include <pthread.h>
#include <syslog.h>

#include "session.h"

#define LOOK_UP(name)             \
    __typeof__(name) *name##_ptr; \
    *(void **)&name##_ptr = dlsym(library, #name)

static const char *path;

static void *load(void) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK(library);
    return library;
}

static bool is_loaded(void) {
    return dlopen(path, RTLD_NOW | RTLD_NOLOAD) != NULL;
}

// Calls that fail, and so use the log, the storage of the thread, and librdmacm.
static void *use(void *library) {
    LOOK_UP(rpma_conn_cfg_get_timeout);
    LOOK_UP(rpma_err_last_failure);
    LOOK_UP(rpma_utils_get_ibv_context);
    int timeout = 0;
    CHECK(rpma_conn_cfg_get_timeout_ptr(NULL, &timeout) == RPMA_E_INVAL);
    CHECK(*rpma_err_last_failure_ptr(NULL) != '\0');
    struct ibv_context *context = NULL;
    CHECK(rpma_utils_get_ibv_context_ptr("no such host", RPMA_UTIL_IBV_CONTEXT_REMOTE,
                                         &context) == RPMA_E_PROVIDER);
    return NULL;
}

static pthread_barrier_t barrier;

// A thread that exits after the library, whose thread-local variables it has used.
static void *outlive(void *library) {
    use(library);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return NULL;
}

int main(int argc, char *argv[]) {
    CHECK(argc == 2);
    path = argv[1];
    CHECK(pthread_barrier_init(&barrier, NULL, 2) == 0);
    for (int round = 0; round < 3; round++) {
        void *library = load();
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, outlive, library) == 0);
        use(library);
        pthread_barrier_wait(&barrier);
        CHECK(dlclose(library) == 0);
        CHECK(!is_loaded());
        syslog(LOG_DEBUG, "the library is closed");
        pthread_barrier_wait(&barrier);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    return 0;
}
