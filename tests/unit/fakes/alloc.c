// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// alloc.c -- the allocator as librpma.so.0 sees it. Its relocations are redirected after
// loading, so that nothing else in the process is touched and sanitizers and valgrind still see
// each block.

#include "internal.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void track(enum fake_kind kind, const void *block, size_t bytes) {
    struct fake_object *o = fake_create(kind, sizeof(*o), 0);
    o->outer = block;
    o->bytes = bytes;
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
    if (block)
        memset(block, 0xa5, bytes);
    return block;
}

static void *hooked_malloc(size_t bytes) {
    FAKE_LOCKED;
    if (refused("malloc", bytes))
        return NULL;
    void *block = scribbled(malloc(bytes), bytes);
    track(FAKE_BLOCK, block, bytes);
    return block;
}

// Recorded as malloc(), because compilers replace one by the other.
static void *hooked_calloc(size_t number, size_t size) {
    FAKE_LOCKED;
    if (refused("malloc", number * size))
        return NULL;
    void *block = calloc(number, size);
    track(FAKE_BLOCK, block, number * size);
    return block;
}

static void *hooked_aligned_alloc(size_t alignment, size_t bytes) {
    FAKE_LOCKED;
    if (refused("aligned_alloc", bytes))
        return NULL;
    void *block = scribbled(aligned_alloc(alignment, bytes), bytes);
    track(FAKE_BLOCK, block, bytes);
    return block;
}

static int hooked_posix_memalign(void **block, size_t alignment, size_t bytes) {
    FAKE_LOCKED;
    if (refused("posix_memalign", bytes))
        return ENOMEM;
    int ret = posix_memalign(block, alignment, bytes);
    if (ret == 0)
        track(FAKE_BLOCK, scribbled(*block, bytes), bytes);
    return ret;
}

static void *hooked_realloc(void *old, size_t bytes) {
    FAKE_LOCKED;
    struct fake_object *o = old ? fake_find(FAKE_BLOCK, old, "realloc") : NULL;
    if (refused("realloc", bytes) || (old && !o))
        return NULL;
    void *block = realloc(old, bytes);
    if (o && block)
        fake_destroy(o);
    track(FAKE_BLOCK, block, bytes);
    return block;
}

static void hooked_free(void *block) {
    FAKE_LOCKED;
    struct fake_object *o = block ? fake_find(FAKE_BLOCK, block, "free") : NULL;
    if (!o)
        return;
    scribbled(block, o->bytes);
    fake_destroy(o);
    free(block);
}

static void *hooked_mmap(void *addr, size_t bytes, int prot, int flags, int fd, off_t offset) {
    FAKE_LOCKED;
    if (refused("mmap", bytes))
        return MAP_FAILED;
    void *mapping = mmap(addr, bytes, prot, flags, fd, offset);
    if (mapping != MAP_FAILED)
        track(FAKE_MAPPING, mapping, bytes);
    return mapping;
}

static int hooked_munmap(void *addr, size_t bytes) {
    FAKE_LOCKED;
    struct fake_object *o = fake_find(FAKE_MAPPING, addr, "munmap");
    if (!o)
        return -1;
    if (o->bytes != bytes)
        fake_misuse("munmap: %zu bytes of %zu", bytes, o->bytes);
    fake_destroy(o);
    return munmap(addr, bytes);
}

// ---- syslog(), whose real output no test could read -----------------------------------------

static char syslog_text[2048];
static int syslog_priority;

static void hooked_syslog(int priority, const char *format, ...) {
    va_list args;
    va_start(args, format);
    syslog_priority = priority;
    vsnprintf(syslog_text, sizeof(syslog_text), format, args);
    va_end(args);
}

static void hooked_syslog_chk(int priority, int flag, const char *format, ...) {
    (void)flag;
    va_list args;
    va_start(args, format);
    syslog_priority = priority;
    vsnprintf(syslog_text, sizeof(syslog_text), format, args);
    va_end(args);
}

const char *fake_syslog(int *priority) {
    *priority = syslog_priority;
    return syslog_text;
}

void fake_syslog_forget(void) {
    syslog_priority = -1;
    syslog_text[0] = '\0';
}

// ---- formatting of text ---------------------------------------------------------------------

static atomic_uint formatted;

static int hooked_vsnprintf(char *to, size_t size, const char *format, va_list args) {
    formatted++;
    return vsnprintf(to, size, format, args);
}

static int hooked_vsnprintf_chk(char *to, size_t size, int flag, size_t room,
                                const char *format, va_list args) {
    (void)flag;
    (void)room;
    return hooked_vsnprintf(to, size, format, args);
}

unsigned fake_formatted(void) {
    return formatted;
}

static const struct {
    const char *name;
    void *hook;
} hooks[] = {
    {"malloc", hooked_malloc},
    {"calloc", hooked_calloc},
    {"aligned_alloc", hooked_aligned_alloc},
    {"posix_memalign", hooked_posix_memalign},
    {"realloc", hooked_realloc},
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
};

void *fake_hook(const char *name) {
    for (size_t i = 0; i < sizeof(hooks) / sizeof(hooks[0]); i++)
        if (strcmp(name, hooks[i].name) == 0)
            return hooks[i].hook;
    return NULL;
}

// Allocating functions that would bypass the hooks. librpma must not import any of
// them.
static const char *const unhooked[] = {"_Znwm", "_Znam", "strdup", "asprintf"};

struct search {
    const char *symbol; // the symbol to look for; NULL: redirect the hooked functions
    bool found, patched;
    const char *error;
};

static void redirect(const struct dl_phdr_info *info, const ElfW(Rela) * rela, const char *name,
                     struct search *search) {
    for (size_t i = 0; i < sizeof(unhooked) / sizeof(unhooked[0]); i++)
        if (strcmp(name, unhooked[i]) == 0)
            search->error = unhooked[i];
    for (size_t i = 0; i < sizeof(hooks) / sizeof(hooks[0]); i++) {
        if (strcmp(name, hooks[i].name) != 0)
            continue;
        void **slot = (void **)(info->dlpi_addr + rela->r_offset);
        const size_t page = (size_t)sysconf(_SC_PAGESIZE);
        void *start = (void *)((uintptr_t)slot & ~(page - 1));
        if (mprotect(start, page, PROT_READ | PROT_WRITE) != 0)
            search->error = "mprotect";
        else
            *slot = hooks[i].hook;
        search->patched = true;
    }
}

static void walk(const struct dl_phdr_info *info, const ElfW(Rela) * rela, size_t bytes,
                 const ElfW(Sym) * symbols, const char *strings, struct search *search) {
    for (size_t i = 0; rela && i < bytes / sizeof(*rela); i++) {
        const size_t index = ELF64_R_SYM(rela[i].r_info);
        const char *name = strings + symbols[index].st_name;
        if (index == 0)
            continue;
        if (!search->symbol)
            redirect(info, &rela[i], name, search);
        else if (strcmp(name, search->symbol) == 0)
            search->found = true;
    }
}

static int visit(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    if (!strstr(info->dlpi_name, "librpma.so"))
        return 0;
    const ElfW(Dyn) *dyn = NULL;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            dyn = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    ElfW(Addr) value[DT_JMPREL + 1] = {0};
    for (; dyn && dyn->d_tag != DT_NULL; dyn++)
        if (dyn->d_tag > 0 && dyn->d_tag <= DT_JMPREL)
            value[dyn->d_tag] = dyn->d_un.d_val;
    const ElfW(Sym) *symbols = (const ElfW(Sym) *)value[DT_SYMTAB];
    const char *strings = (const char *)value[DT_STRTAB];
    walk(info, (const ElfW(Rela) *)value[DT_RELA], value[DT_RELASZ], symbols, strings, data);
    walk(info, (const ElfW(Rela) *)value[DT_JMPREL], value[DT_PLTRELSZ], symbols, strings,
         data);
    return 1;
}

const char *fake_hook_allocator(void) {
    struct search search = {0};
    static char message[128];
    if (!dl_iterate_phdr(visit, &search))
        return "librpma.so.0 is not loaded";
    if (search.error) {
        snprintf(message, sizeof(message), "librpma.so.0 imports %s, which has no hook",
                 search.error);
        return message;
    }
    return search.patched ? NULL : "librpma.so.0 imports no allocator";
}

bool fake_library_imports(const char *symbol) {
    struct search search = {.symbol = symbol};
    dl_iterate_phdr(visit, &search);
    return search.found;
}
