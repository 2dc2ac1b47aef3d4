// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// libc.cc -- the functions of the C library and of libpmem2 that the programs call. Only their
// modules are linked with --wrap for these names, so the simulator itself calls the real ones.

#include "simulation.hh"

#include <algorithm>
#include <arpa/inet.h>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <libpmem2.h>
#include <malloc.h>
#include <netdb.h>
#include <sstream>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <utility>

struct File : Object {
    Machine *machine = nullptr;
    off_t locked_begin = 0, locked_end = 0; // the locked bytes while the file is open
    File *as_file() override { return this; }
};

namespace {

int print(FILE *stream, const std::string &text) {
    Process &process = *simulation.current;
    // Prints errors and warnings of the library's log.
    const bool is_error = text.find("*ERROR* ") != std::string::npos;
    // These calls fail if the client has ended, which a server cannot detect before.
    process.logged |= is_error && !(process.is_server &&
                                    (text.find(" rdma_create_qp_ex(") != std::string::npos ||
                                     text.find(" rdma_reject(") != std::string::npos ||
                                     text.find(" rdma_accept(") != std::string::npos));
    if (is_error || text.find("*WARN*  ") != std::string::npos) {
        simulation.trace(process.name + ": " +
                         text.substr(text.find('*'), text.find('\n') - text.find('*')));
        return static_cast<int>(text.size());
    }
    std::string &output = stream == stderr ? process.errors : process.output;
    output += text;
    if (stream == stderr || output.empty() || output.back() != '\n')
        return static_cast<int>(text.size());
    simulation.preemption_point();
    std::istringstream lines(std::exchange(output, {}));
    for (std::string line; std::getline(lines, line);)
        simulation.handle_line(process, line);
    return static_cast<int>(text.size());
}

int wait_for_any(struct pollfd *fds, nfds_t count, int timeout) {
    int64_t deadline = timeout < 0 ? NEVER : simulation.now + timeout;
    simulation.preemption_point();
    for (;;) {
        int ready = 0;
        for (nfds_t i = 0; i < count; i++) {
            fds[i].revents = 0;
            if (fds[i].fd >= 0 && simulation.is_readable(fds[i].fd))
                fds[i].revents = POLLIN, ready++;
        }
        if (ready || simulation.now >= deadline)
            return ready;
        simulation.current->wait_until(fds, count, deadline);
    }
}

File *file_of(int fd) {
    Object *object = simulation.descriptor(fd).object;
    File *file = object ? object->as_file() : nullptr;
    if (!file)
        simulation.fail("uses the descriptor %d, which is no file", fd);
    return file;
}

} // namespace

#define WRAPPED extern "C"

// Defines a function that only returns a value.
#define RETURNS(type, function, parameters, value) \
    WRAPPED type function parameters {             \
        return value;                              \
    }

RETURNS(int, __wrap_setvbuf, (FILE *, char *, int, size_t), 0)
RETURNS(int, __wrap_posix_fallocate, (int, off_t, off_t), 0)
RETURNS(int, __wrap_atexit, (void (*)(void)), 0) // the output of programs does not fail
RETURNS(pid_t, __wrap_getpid, (), 1 + simulation.current->index)

// ---- input and output

WRAPPED int __wrap_vfprintf(FILE *stream, const char *format, va_list values) {
    char text[1024];
    int size = vsnprintf(text, sizeof(text), format, values);
    return print(stream, std::string(text, static_cast<size_t>(size)));
}

WRAPPED int __wrap_fprintf(FILE *stream, const char *format, ...) {
    va_list values;
    va_start(values, format);
    int size = __wrap_vfprintf(stream, format, values);
    va_end(values);
    return size;
}

WRAPPED int __wrap_printf(const char *format, ...) {
    va_list values;
    va_start(values, format);
    int size = __wrap_vfprintf(stdout, format, values);
    va_end(values);
    return size;
}

RETURNS(int, __wrap_fputc, (int byte, FILE *stream), print(stream, {static_cast<char>(byte)}))

// The reader reads the lines that the clients printed. A client reads lines of different
// lengths.
WRAPPED int __wrap_getc(FILE *) {
    Process &process = *simulation.current;
    if (process.input_read == process.input.size()) {
        simulation.preemption_point();
        if (process.lines_read == process.lines)
            return EOF;
        const size_t number = process.lines_read++;
        process.input = &process == &simulation.reader
                            ? simulation.client_lines[number]
                            : process.name + ", line " + std::to_string(number + 1) +
                                  std::string((number + 1) * 7 % 23, '.');
        process.input += '\n';
        process.input_read = 0;
    }
    return static_cast<unsigned char>(process.input[process.input_read++]);
}

// ---- the process

WRAPPED void __wrap_exit(int status) {
    simulation.current->end(status);
    simulation.current->yield();
    __builtin_unreachable();
}

// Returns a new number at each call, and the same ones in each run of a schedule.
WRAPPED ssize_t __wrap_getrandom(void *buffer, size_t size, unsigned) {
    uint64_t state = simulation.random_numbers++, number = sim::next_random(state);
    memcpy(buffer, &number, std::min(size, sizeof(number)));
    return static_cast<ssize_t>(size);
}

WRAPPED int __wrap_clock_gettime(clockid_t, struct timespec *time) {
    time->tv_sec = simulation.now / 1000;
    time->tv_nsec = simulation.now % 1000 * 1000000;
    return 0;
}

WRAPPED int __wrap_sigprocmask(int how, const sigset_t *set, sigset_t *) {
    if (how == SIG_BLOCK)
        simulation.current->blocked = *set;
    return 0;
}

// The program must also block these signals: otherwise they would end it.
WRAPPED int __wrap_signalfd(int fd, const sigset_t *set, int flags) {
    if (fd != -1 || (flags & ~(SFD_CLOEXEC | SFD_NONBLOCK)) != 0)
        simulation.fail("calls signalfd() with a descriptor or unknown flags");
    for (int signal = 1; signal < NSIG; signal++)
        if ((signal == SIGINT || signal == SIGTERM) != sigismember(set, signal) ||
            (sigismember(set, signal) && !sigismember(&simulation.current->blocked, signal)))
            simulation.fail(
                "does not wait for SIGINT and SIGTERM alone, or does not block them");
    return simulation.open_descriptor(Descriptor::SIGNALS);
}

WRAPPED int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout) {
    for (nfds_t i = 0; i < count; i++)
        if (fds[i].fd >= 0)
            simulation.descriptor(fds[i].fd);
    simulation.configuration->oracle->on_wait(*simulation.current);
    return wait_for_any(fds, count, timeout);
}

// ---- names and dynamic memory, also of the libraries

WRAPPED void *__wrap_malloc(size_t size) {
    return simulation.current ? simulation.current->heap.allocate(size) : malloc(size);
}

WRAPPED void *__wrap_calloc(size_t count, size_t size) {
    return simulation.current ? simulation.current->heap.allocate_zeros(count * size)
                              : calloc(count, size);
}

WRAPPED void __wrap_free(void *ptr) {
    if (ptr && simulation.current && simulation.current->heap.contains(ptr))
        simulation.current->heap.release(ptr);
    else
        free(ptr);
}

WRAPPED size_t __wrap_malloc_usable_size(void *ptr) {
    return simulation.current && simulation.current->heap.contains(ptr)
               ? Heap::size_of(ptr)
               : malloc_usable_size(ptr);
}

// Machine N has the address 10.77.0.N.
WRAPPED int __wrap_getaddrinfo(const char *node, const char *service, const addrinfo *,
                               addrinfo **names) {
    const auto found = std::ranges::find_if(simulation.machines, [node](const auto &machine) {
        return node && machine->name == node;
    });
    if (found == simulation.machines.end())
        return EAI_NONAME;
    struct Name {
        addrinfo info;
        sockaddr_in address;
    };
    auto *const name = static_cast<Name *>(__wrap_calloc(1, sizeof(Name)));
    name->address.sin_family = AF_INET;
    name->address.sin_addr.s_addr =
        htonl(0x0a4d0001 + static_cast<uint32_t>(found - simulation.machines.begin()));
    name->address.sin_port = htons(static_cast<uint16_t>(service ? atoi(service) : 0));
    name->info.ai_family = AF_INET;
    name->info.ai_socktype = SOCK_STREAM;
    name->info.ai_addrlen = sizeof(name->address);
    name->info.ai_addr = reinterpret_cast<sockaddr *>(&name->address);
    *names = &name->info;
    return 0;
}

RETURNS(void, __wrap_freeaddrinfo, (addrinfo * names), __wrap_free(names))
RETURNS(void, __wrap_syslog, (int, const char *, ...), (void)0)
RETURNS(int, __wrap_sched_yield, (), (simulation.preemption_point(), 0))
RETURNS(int, __wrap_nanosleep, (const timespec *, timespec *),
        (simulation.preemption_point(), 0))

// ---- files and memory

WRAPPED int __wrap_open(const char *name, int, ...) {
    if (strcmp(name, "/dev/null") == 0) // ibv_open_device(): ibv_context.cmd_fd
        return simulation.open_descriptor(Descriptor::OBJECT, simulation.make_object<Object>());
    auto *file = simulation.make_object<File>();
    file->machine = simulation.machine(name);
    if (!file->machine)
        simulation.fail("opens %s, which is no file of a machine", name);
    return simulation.open_descriptor(Descriptor::OBJECT, file);
}

WRAPPED int __wrap_close(int fd) {
    Descriptor &descriptor = simulation.descriptor(fd);
    descriptor.closed = true;
    if (descriptor.object)
        descriptor.object->alive = false;
    return 0;
}

WRAPPED int __wrap_fstat(int fd, struct stat *status) {
    file_of(fd);
    memset(status, 0, sizeof(*status));
    status->st_mode = S_IFREG;
    status->st_size = MEMORY_SIZE;
    return 0;
}

// A lock of an open file description. Linux also keeps it while the file is mapped.
static int lock_file(File &file, const struct flock &lock) {
    simulation.preemption_point();
    const off_t end = lock.l_start + lock.l_len;
    for (auto &object : simulation.objects)
        if (const File *other = object->as_file();
            other && other != &file && other->alive && other->machine == file.machine &&
            other->locked_begin < end && lock.l_start < other->locked_end) {
            errno = EAGAIN;
            return -1;
        }
    file.locked_begin = lock.l_start;
    file.locked_end = end;
    return 0;
}

WRAPPED int __wrap_fcntl(int fd, int command, ...) {
    va_list values;
    va_start(values, command);
    if (command == F_GETFD) { // the standard descriptors are open
        va_end(values);
        return fd >= 0 && fd <= 2 ? 0 : -1;
    }
    if (command == F_OFD_SETLK) {
        const struct flock lock = *va_arg(values, const struct flock *);
        va_end(values);
        if (lock.l_type != F_WRLCK || lock.l_whence != SEEK_SET)
            simulation.fail("not simulated: this lock");
        return lock_file(*file_of(fd), lock);
    }
    Descriptor &descriptor = simulation.descriptor(fd);
    if (command == F_SETFL)
        descriptor.nonblocking = va_arg(values, int) & O_NONBLOCK;
    va_end(values);
    return command == F_GETFL && descriptor.nonblocking ? O_NONBLOCK : 0;
}

WRAPPED void *__wrap_mmap(void *, size_t size, int, int, int fd, off_t offset) {
    if (fd < 0)
        return simulation.current->map_memory(size);
    const Descriptor &descriptor = simulation.descriptor(fd);
    return descriptor.kind == Descriptor::RING
               ? reinterpret_cast<char *>(descriptor.ring)
               : file_of(fd)->machine->memory.visible() + offset;
}

WRAPPED int __wrap_munmap(void *ptr, size_t) {
    simulation.current->unmap_memory(ptr);
    return 0;
}

// ---- libpmem2

struct pmem2_source {};
struct pmem2_config {};
struct pmem2_map {};

namespace {

pmem2_source the_source;
pmem2_config the_config;
pmem2_map the_map;

Memory &memory() {
    return simulation.current->machine->memory;
}

bool is_locked(size_t begin, size_t end) {
    return std::ranges::any_of(simulation.objects, [=](const auto &object) {
        const File *file = object->as_file();
        return file && file->alive && file->owner == simulation.current &&
               file->locked_begin <= static_cast<off_t>(begin) &&
               static_cast<off_t>(end) <= file->locked_end;
    });
}

void persist(const void *ptr, size_t size) {
    simulation.preemption_point();
    size_t begin = static_cast<size_t>(static_cast<const char *>(ptr) - memory().visible());
    if (!memory().contains(ptr) || size > MEMORY_SIZE - begin)
        simulation.fail("persists memory that is not mapped from a file");
    if (simulation.configuration->oracle->locks_files && !is_locked(begin, begin + size))
        simulation.fail("uses a part of a file that it has not locked");
    memory().find_own_stores();
    // A power failure can also leave the states before this call.
    simulation.configuration->oracle->check();
    memory().persist(begin, begin + size);
}

} // namespace

WRAPPED int pmem2_source_from_fd(pmem2_source **source, int fd) {
    if (file_of(fd)->machine != simulation.current->machine)
        simulation.fail("maps the memory of another machine");
    *source = &the_source;
    return 0;
}

WRAPPED int pmem2_config_new(pmem2_config **config) {
    *config = &the_config;
    return 0;
}

WRAPPED int pmem2_map_new(pmem2_map **map, const pmem2_config *, const pmem2_source *) {
    *map = &the_map;
    return 0;
}

RETURNS(int, pmem2_config_set_required_store_granularity, (pmem2_config *, pmem2_granularity),
        0)
RETURNS(int, pmem2_source_delete, (pmem2_source **), 0)
RETURNS(int, pmem2_config_delete, (pmem2_config **), 0)
RETURNS(int, pmem2_map_delete, (pmem2_map **), 0)
RETURNS(void *, pmem2_map_get_address, (pmem2_map *), memory().visible())
RETURNS(size_t, pmem2_map_get_size, (pmem2_map *), MEMORY_SIZE)
RETURNS(pmem2_granularity, pmem2_map_get_store_granularity, (pmem2_map *),
        PMEM2_GRANULARITY_CACHE_LINE)
RETURNS(pmem2_persist_fn, pmem2_get_persist_fn, (pmem2_map *), persist)
RETURNS(const char *, pmem2_errormsg, (void), "a failure of libpmem2")
