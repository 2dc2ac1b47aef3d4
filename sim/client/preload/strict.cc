// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// strict.cc -- the table of a program's objects, and the file of its misuses

#include "strict.hh"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <initializer_list>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

constexpr size_t BUCKETS = 1 << 14;
struct Alias {
    uint64_t key;
    Object *object;
    Alias *next;
};
Object *buckets[BUCKETS];
Alias *aliases[BUCKETS];
char lock;
pid_t owner; // has created the first object; a child of fork() has the objects of its parent

// The places that were reported.
struct Place {
    Check check;
    const void *caller;
    Place *next;
} * places;

struct {
    const char *name, *remedy;
} constexpr CHECKS[] = {
#define ROW(check, name, what, remedy) {name, remedy},
    STRICT_CHECKS(ROW)
#undef ROW
};

constexpr const char *KINDS[] = {"device context",
                                 "completion channel",
                                 "protection domain",
                                 "memory region",
                                 "completion queue",
                                 "SRQ",
                                 "queue pair",
                                 "address handle",
                                 "event channel",
                                 "CM ID",
                                 "event"};
static_assert(sizeof(KINDS) / sizeof(KINDS[0]) == static_cast<size_t>(Kind::COUNT));

size_t bucket_of(uint64_t key) {
    return key * 0x9e37'79b9'7f4a'7c15 >> 50;
}

// Returns true for a call by a library of rdma-sim, whose caller has no misuse of its own.
bool is_internal(const void *caller) {
    Dl_info info;
    if (dladdr(caller, &info) == 0 || info.dli_fname == nullptr)
        return false;
    const char *const slash = strrchr(info.dli_fname, '/');
    const char *const name = slash == nullptr ? info.dli_fname : slash + 1;
    for (const char *const library : {"librdmacm.so", "libibverbs.so", "librdma-sim-strict.so"})
        if (strncmp(name, library, strlen(library)) == 0)
            return true;
    return false;
}

// One line of the file `misuses` of the run: the place and the text. rdma-sim reads it.
void write_line(const void *caller, const char *text) {
    char path[4096], line[2048];
    Dl_info info = {};
    snprintf(path, sizeof(path), "%s/../misuses", settings().root);
    const bool is_found = dladdr(caller, &info) != 0 && info.dli_fname != nullptr;
    // The return address is behind the call.
    const auto offset =
        reinterpret_cast<uintptr_t>(caller) - 1 - reinterpret_cast<uintptr_t>(info.dli_fbase);
    const int length = snprintf(line, sizeof(line), "%s\t%#zx\t%s\n",
                                is_found ? info.dli_fname : "?", offset, text);
    // The functions of the C library are replaced.
    const auto fd = static_cast<int>(REAL(syscall)(
        SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666));
    if (fd < 0)
        return;
    const auto wanted = static_cast<size_t>(length);
    (void)REAL(syscall)(SYS_write, fd, line, wanted < sizeof(line) ? wanted : sizeof(line) - 1);
    (void)REAL(syscall)(SYS_close, fd);
}

struct Leaks {
    unsigned counts[static_cast<size_t>(Kind::COUNT)];
    const Object *first;
};

void count_leak(Object &object, void *argument) {
    auto &leaks = *static_cast<Leaks *>(argument);
    if (object.is_internal || object.kind == Kind::EVENT)
        return;
    leaks.counts[static_cast<size_t>(object.kind)]++;
    if (leaks.first == nullptr || object.kind < leaks.first->kind)
        leaks.first = &object;
}

void report_leaks(int status, void *) {
    Leaks leaks = {};
    if (status != 0 || getpid() != owner)
        return;
    const Lock held;
    for_each(count_leak, &leaks);
    if (leaks.first == nullptr)
        return;
    char list[512] = "";
    for (size_t kind = 0; kind < static_cast<size_t>(Kind::COUNT); kind++)
        if (leaks.counts[kind] > 0)
            snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%u %s%s",
                     *list == '\0' ? "" : ", ", leaks.counts[kind], KINDS[kind],
                     leaks.counts[kind] > 1 ? "s" : "");
    report(Check::LEAK, {leaks.first->creator, leaks.first->created}, "not destroyed: %s",
           list);
}

__attribute__((constructor)) void begin() {
    on_exit(report_leaks, nullptr);
}

} // namespace

Lock::Lock() {
    while (__atomic_test_and_set(&lock, __ATOMIC_ACQUIRE))
        (void)syscall(SYS_sched_yield);
}

Lock::~Lock() {
    __atomic_clear(&lock, __ATOMIC_RELEASE);
}

void Queue::add(const Posted &posted) {
    if (count == room) {
        const size_t larger = room == 0 ? 16 : 2 * room;
        auto *const made = static_cast<Posted *>(malloc(larger * sizeof(Posted)));
        if (made == nullptr)
            abort();
        for (size_t i = 0; i < count; i++)
            made[i] = at(i);
        free(all);
        all = made;
        room = larger;
        first = 0;
    }
    count++;
    at(count - 1) = posted;
}

Object *find(uint64_t key) {
    Object *object = buckets[bucket_of(key)];
    while (object != nullptr && object->key != key)
        object = object->next;
    return object;
}

Object *find(const void *pointer) {
    Object *const object = pointer == nullptr ? nullptr : find(key_of(pointer));
    return object == nullptr || object->is_dead ? nullptr : object;
}

Object *alias(uint64_t key) {
    const Alias *each = aliases[bucket_of(key)];
    while (each != nullptr && each->key != key)
        each = each->next;
    return each == nullptr ? nullptr : each->object;
}

void add_alias(uint64_t key, Object *object) {
    remove_alias(key);
    Alias *&first = aliases[bucket_of(key)];
    auto *const made = static_cast<Alias *>(malloc(sizeof(Alias)));
    if (made == nullptr)
        abort();
    *made = {key, object, first};
    first = made;
}

void remove_alias(uint64_t key) {
    Alias **each = &aliases[bucket_of(key)];
    while (*each != nullptr && (*each)->key != key)
        each = &(*each)->next;
    if (Alias *const removed = *each) {
        *each = removed->next;
        free(removed);
    }
}

void for_each(void (*function)(Object &, void *), void *argument) {
    for (Object *object : buckets)
        for (; object != nullptr; object = object->next)
            if (!object->is_dead)
                function(*object, argument);
}

Object *add(Kind kind, const void *pointer, const Call &call) {
    if (pointer == nullptr)
        return nullptr;
    if (owner == 0)
        owner = getpid();
    Object *object = find(key_of(pointer));
    if (object == nullptr) {
        Object *&first = buckets[bucket_of(key_of(pointer))];
        object = static_cast<Object *>(malloc(sizeof(Object)));
        if (object == nullptr)
            abort();
        *object = {};
        object->next = first;
        first = object;
    } else {
        free(object->sends.all);
        free(object->receives.all);
        Object *const next = object->next;
        *object = {};
        object->next = next;
    }
    object->key = key_of(pointer);
    object->kind = kind;
    object->created = call.caller;
    object->creator = call.function;
    object->is_internal = is_internal(call.caller);
    return object;
}

void use(Object *user, const void *used) {
    Object *const object = find(used);
    for (Object *&each : user->used)
        if (object != nullptr && each == nullptr) {
            each = object;
            object->users++;
            return;
        }
}

void use_instead(Object *user, const void *used) {
    Object *&first = user->used[0];
    if (first != nullptr && first->users > 0)
        first->users--;
    first = nullptr;
    use(user, used);
}

void remove(Object *object) {
    object->is_dead = true;
    for (Object *&each : object->used) {
        if (each != nullptr && each->users > 0)
            each->users--;
        each = nullptr;
    }
}

const char *name_of(Kind kind) {
    return KINDS[static_cast<size_t>(kind)];
}

void report(Check check, const Call &call, const char *format, ...) {
    char what[512], text[1536];
    va_list arguments;
    if (is_internal(call.caller))
        return;
    for (const Place *each = places; each != nullptr; each = each->next)
        if (each->check == check && each->caller == call.caller)
            return;
    if (auto *const made = static_cast<Place *>(malloc(sizeof(Place)))) {
        *made = {check, call.caller, places};
        places = made;
    }
    va_start(arguments, format);
    vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    const auto &row = CHECKS[static_cast<size_t>(check)];
    snprintf(text, sizeof(text), "host%u: %s: %s(): %s: %s [%s]", settings().host,
             program_invocation_short_name, call.function, what, row.remedy, row.name);
    write_line(call.caller, text);
}

bool is_usable(Kind kind, const void *pointer, const Call &call) {
    const Object *const object = pointer == nullptr ? nullptr : find(key_of(pointer));
    if (object == nullptr || !object->is_dead || object->kind != kind)
        return true;
    report(Check::DESTROYED, call, "this %s was destroyed before", name_of(kind));
    return false;
}

bool may_destroy(Kind kind, const void *pointer, const Call &call) {
    if (!is_usable(kind, pointer, call))
        return false;
    const Object *const object = find(pointer);
    if (object == nullptr)
        return true;
    if (object->users > 0)
        report(Check::IN_USE, call, "%u object%s use%s this %s", object->users,
               object->users > 1 ? "s" : "", object->users > 1 ? "" : "s", name_of(kind));
    if (object->events > 0)
        report(Check::EVENTS, call, "%u event%s of this %s %s not acknowledged", object->events,
               object->events > 1 ? "s" : "", name_of(kind), object->events > 1 ? "are" : "is");
    return true;
}
