// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// alloc.c -- the allocator as librpma.so.0 sees it. Its relocations are redirected after
// loading, so that nothing else in the process is touched and sanitizers and valgrind still see
// each block.

#include "internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void *track(enum fake_kind kind, void *block, size_t bytes) {
    struct fake_object *o = fake_create(kind, sizeof(*o));
    o->outer = block;
    o->bytes = bytes;
    return block;
}

static bool refused(const char *name, size_t bytes) {
    struct fake_call *call = fake_enter(name, NULL);
    call->libc = true;
    call->bytes = bytes;
    if (call->failed)
        errno = ENOMEM;
    return call->failed;
}

// Fills fresh memory, so that it is never zero by chance.
static void *scribbled(void *block, size_t bytes) {
    return block ? memset(block, 0xa5, bytes) : NULL;
}

static void *hooked_malloc(size_t bytes) {
    FAKE_LOCKED;
    return refused("malloc", bytes) ? NULL
                                    : track(FAKE_BLOCK, scribbled(malloc(bytes), bytes), bytes);
}

// Recorded as malloc(), because compilers replace one by the other.
static void *hooked_calloc(size_t number, size_t size) {
    FAKE_LOCKED;
    return refused("malloc", number * size)
               ? NULL
               : track(FAKE_BLOCK, calloc(number, size), number * size);
}

static void hooked_free(void *block) {
    FAKE_LOCKED_FOR("free");
    struct fake_object *o = block ? fake_find(FAKE_BLOCK, block) : NULL;
    if (!o)
        return;
    scribbled(block, o->bytes);
    fake_destroy(o);
    free(block);
}

static void *hooked_mmap(void *addr, size_t bytes, int prot, int flags, int fd, off_t offset) {
    FAKE_LOCKED;
    void *mapping = MAP_FAILED;
    if (!refused("mmap", bytes))
        mapping = mmap(addr, bytes, prot, flags, fd, offset);
    return mapping == MAP_FAILED ? mapping : track(FAKE_MAPPING, mapping, bytes);
}

static int hooked_munmap(void *addr, size_t bytes) {
    FAKE_LOCKED_FOR("munmap");
    struct fake_object *o = fake_find(FAKE_MAPPING, addr);
    if (!o)
        return -1;
    if (o->bytes != bytes)
        fake_misuse("%zu bytes of %zu", bytes, o->bytes);
    fake_destroy(o);
    return munmap(addr, bytes);
}

// ---- syslog(), whose real output no test could read, and the formatting of text -------------

static char syslog_text[2048];
static int syslog_priority;
static atomic_uint formatted;

#define HOOKED_SYSLOG(name, ...)                                             \
    static void name(int priority, ##__VA_ARGS__, const char *format, ...) { \
        va_list args;                                                        \
        va_start(args, format);                                              \
        syslog_priority = priority;                                          \
        vsnprintf(syslog_text, sizeof(syslog_text), format, args);           \
        va_end(args);                                                        \
    }
HOOKED_SYSLOG(hooked_syslog)
HOOKED_SYSLOG(hooked_syslog_chk, __attribute__((unused)) int flag)

const char *fake_syslog(int *priority) {
    *priority = syslog_priority;
    return syslog_text;
}

void fake_syslog_forget(void) {
    syslog_priority = -1;
    syslog_text[0] = '\0';
}

static int hooked_vsnprintf(char *to, size_t size, const char *format, va_list args) {
    formatted++;
    return vsnprintf(to, size, format, args);
}

static int hooked_vsnprintf_chk(char *to, size_t size, __attribute__((unused)) int flag,
                                __attribute__((unused)) size_t room, const char *format,
                                va_list args) {
    return hooked_vsnprintf(to, size, format, args);
}

unsigned fake_formatted(void) {
    return formatted;
}

// ---- redirection ---------------------------------------------------------------------------

static const struct hook {
    const char *name;
    void *instead;
} hooks[] = {
    {"malloc", hooked_malloc},
    {"calloc", hooked_calloc},
    {"free", hooked_free},
    {"mmap", hooked_mmap},
    {"mmap64", hooked_mmap},
    {"munmap", hooked_munmap},
    {"getaddrinfo", fake_getaddrinfo},
    {"freeaddrinfo", fake_freeaddrinfo},
    {"syslog", hooked_syslog},
    {"__syslog_chk", hooked_syslog_chk},
    {"vsnprintf", hooked_vsnprintf},
    {"__vsnprintf_chk", hooked_vsnprintf_chk},
    // Allocating functions that would bypass the hooks: librpma must not import them.
    {"realloc", NULL},
    {"aligned_alloc", NULL},
    {"posix_memalign", NULL},
    {"strdup", NULL},
    {"asprintf", NULL},
    {"_Znwm", NULL},
    {"_Znam", NULL},
};

static const struct hook *hook_of(const char *name) {
    for (unsigned i = 0; i < FAKE_LENGTH(hooks); i++)
        if (strcmp(name, hooks[i].name) == 0)
            return &hooks[i];
    return NULL;
}

void *fake_hook(const char *name) {
    const struct hook *hook = hook_of(name);
    return hook ? hook->instead : NULL;
}

struct search {
    const char *symbol; // the symbol to look for; NULL: redirect the hooked functions
    bool found;         // or redirected
    const char *error;
};

static void redirect(void **slot, const char *name, struct search *search) {
    const struct hook *hook = hook_of(name);
    const unsigned long page = (unsigned long)sysconf(_SC_PAGESIZE);
    void *start = (void *)((uintptr_t)slot & ~(page - 1));
    if (!hook)
        return;
    if (!hook->instead || mprotect(start, page, PROT_READ | PROT_WRITE) != 0)
        search->error = name;
    else
        *slot = hook->instead;
    search->found = true;
}

// Visits the symbols that librpma.so.0 imports; false: it is not loaded.
static bool visit(struct search *search) {
    struct link_map *map = dlopen("librpma.so.0", RTLD_LAZY | RTLD_NOLOAD);
    ElfW(Addr) value[DT_NUM] = {0};
    if (!map)
        return false;
    for (const ElfW(Dyn) *dyn = map->l_ld; dyn->d_tag != DT_NULL; dyn++)
        if (dyn->d_tag < DT_NUM)
            value[dyn->d_tag] = dyn->d_un.d_val;
    const int tables[][2] = {{DT_RELA, DT_RELASZ}, {DT_JMPREL, DT_PLTRELSZ}};
    for (int t = 0; t < 2; t++) {
        const ElfW(Rela) *rela = (const ElfW(Rela) *)value[tables[t][0]];
        for (unsigned i = 0; rela && i < value[tables[t][1]] / sizeof(*rela); i++) {
            const size_t index = ELF64_R_SYM(rela[i].r_info);
            const char *name = (const char *)value[DT_STRTAB] +
                               ((const ElfW(Sym) *)value[DT_SYMTAB])[index].st_name;
            if (index != 0 && !search->symbol)
                redirect((void **)(map->l_addr + rela[i].r_offset), name, search);
            else if (index != 0 && strcmp(name, search->symbol) == 0)
                search->found = true;
        }
    }
    dlclose(map);
    return true;
}

const char *fake_hook_allocator(void) {
    static char message[128];
    struct search search = {0};
    if (!visit(&search))
        return "librpma.so.0 is not loaded";
    snprintf(message, sizeof(message), "librpma.so.0 imports %s, which cannot be hooked",
             search.error ? search.error : "no allocator");
    return search.error || !search.found ? message : NULL;
}

bool fake_library_imports(const char *symbol) {
    struct search search = {.symbol = symbol};
    visit(&search);
    return search.found;
}
