// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// alloc.c -- the allocator of librpma.so.0. Its relocations are redirected after loading, so
// that the rest of the process is unchanged, and sanitizers and valgrind still track each
// block.

#include "internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <linux/capability.h>
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
static void *fill_with_garbage(void *block, size_t bytes) {
    return block ? memset(block, 0xa5, bytes) : NULL;
}

static void *hooked_malloc(size_t bytes) {
    FAKE_LOCKED;
    return refused("malloc", bytes)
               ? NULL
               : track(FAKE_BLOCK, fill_with_garbage(malloc(bytes), bytes), bytes);
}

// Recorded as malloc(), because compilers combine malloc() and memset() into calloc().
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
    fill_with_garbage(block, o->bytes);
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

// ---- syslog(), whose real output a test cannot read, and text formatting --------------------

static char syslog_text[BUFSIZ];
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

// ---- capabilities, which a test cannot gain ------------------------------------------------

static int hooked_capget(__attribute__((unused)) cap_user_header_t header,
                         cap_user_data_t data) {
    data[CAP_TO_INDEX(CAP_IPC_LOCK)].effective =
        fake_device()->ipc_lock ? CAP_TO_MASK(CAP_IPC_LOCK) : 0;
    return 0;
}

// The link of the initial namespace has this number: Linux, include/linux/proc_ns.h,
// PROC_USER_INIT_INO.
static ssize_t hooked_readlink(const char *path, char *to, size_t size) {
    if (strcmp(path, "/proc/self/ns/user") != 0)
        return readlink(path, to, size);
    const unsigned number = fake_device()->user_namespace ? 4026532000 : 4026531837;
    return snprintf(to, size, "user:[%u]", number);
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
    {"capget", hooked_capget},
    {"readlink", hooked_readlink},
};

static const struct hook *hook_of(const char *name) {
    for (unsigned i = 0; i < FAKE_LENGTH(hooks); i++)
        if (strcmp(name, hooks[i].name) == 0)
            return &hooks[i];
    return NULL;
}

static bool redirect(void **slot, const char *name) {
    const struct hook *hook = hook_of(name);
    const unsigned long page = (unsigned long)sysconf(_SC_PAGESIZE);
    if (!hook)
        return false;
    mprotect((void *)((uintptr_t)slot & ~(page - 1)), page, PROT_READ | PROT_WRITE);
    *slot = hook->instead;
    return true;
}

// An entry of the dynamic section; 0 if it does not exist.
static ElfW(Addr) entry(const struct link_map *map, ElfW(Sxword) tag) {
    const ElfW(Dyn) *at = map->l_ld;
    while (at->d_tag != tag && at->d_tag != DT_NULL)
        at++;
    return at->d_un.d_val;
}

static bool visit_table(const struct link_map *map, ElfW(Sxword) table, ElfW(Sxword) size,
                        const char *symbol) {
    const ElfW(Sym) *const symbols = (const ElfW(Sym) *)entry(map, DT_SYMTAB);
    const ElfW(Rela) *const rela = (const ElfW(Rela) *)entry(map, table);
    bool found = false;
    for (unsigned i = 0; i < entry(map, size) / sizeof(*rela); i++) {
        const char *const name =
            (const char *)entry(map, DT_STRTAB) + symbols[ELF64_R_SYM(rela[i].r_info)].st_name;
        found |= symbol ? strcmp(name, symbol) == 0
                        : redirect((void **)(map->l_addr + rela[i].r_offset), name);
    }
    return found;
}

// Returns whether librpma.so.0 imports the symbol. With NULL it redirects the hooked symbols
// instead.
static bool visit(const char *symbol) {
    const struct link_map *const map = dlopen("librpma.so.0", RTLD_LAZY | RTLD_NOLOAD);
    const bool in_data = visit_table(map, DT_RELA, DT_RELASZ, symbol),
               in_calls = visit_table(map, DT_JMPREL, DT_PLTRELSZ, symbol);
    return in_data || in_calls;
}

void fake_hook_allocator(void) {
    visit(NULL);
}

bool fake_library_imports(const char *symbol) {
    return visit(symbol);
}
