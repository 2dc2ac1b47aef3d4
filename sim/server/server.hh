// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// server.hh -- the fabric for processes that connect through a Unix socket.

#pragma once

#include "../model/fabric.hh"
#include "../protocol/ring.hh"
#include "burst.hh"
#include "memory_thread.hh"

#include <cstdio>
#include <string>
#include <unordered_map>

namespace sim {

// Adds a descriptor to an epoll(7). `data` of a ring is the socket of its client, and RING.
void watch(int epoll, int fd, uint32_t events, uint64_t data);
inline constexpr uint64_t RING = uint64_t{1} << 32;

// Creates memory that a process can map. Returns NULL, and sets errno, without a descriptor or
// memory.
void *map_shared(const char *name, size_t size, int &fd);

// A mapping with the rings of a session.
struct RingMemory {
    Ring *take(size_t bytes); // NULL: no room
    void give_back(Ring *ring, size_t bytes);
    RingPlace place_of(uint64_t number, const Ring *ring) const;
    uint32_t session;
    int fd;
    char *base;
    size_t size, used = 0;
    unsigned rings = 0;
    std::multimap<size_t, size_t> free; // offsets by size
};

// Creates the descriptors and memory that the fabric shares with processes.
class SharedEnvironment : public Environment {
  public:
    ~SharedEnvironment() override;
    int open_channel(uint32_t channel) override;
    void close_channel(uint32_t channel) override;
    void raise(uint32_t channel) override;
    void lower(uint32_t channel) override;
    Ring *open_ring(uint32_t session, size_t bytes, RingPlace &place, int &fd) override;
    void close_ring(Ring *ring, size_t bytes) override;
    void write_collected() override { burst.flush(); }
    Burst burst;

  private:
    std::unordered_map<uint32_t, int> channels_; // eventfd(2): the value is 1 or 0
    uint64_t last_memory_ = 0;
    std::unordered_map<uint64_t, RingMemory> memories_;               // by number
    std::unordered_map<uint32_t, std::vector<uint64_t>> memories_of_; // numbers by session
    std::map<char *, uint64_t> by_address_;                           // numbers
};

// The memory of another process.
class ProcessMemory : public Program {
  public:
    // `burst`: NULL if each access is made at once.
    ProcessMemory(int pid, Persistence *persistence, Burst *burst = nullptr);
    ~ProcessMemory() override;
    bool read(uint64_t address, void *to, size_t length) override;
    bool write(uint64_t address, const void *from, size_t length, uint32_t writer) override;
    bool read_pinned(uint64_t address, void *to, size_t length) override;
    void write_pinned(uint64_t address, const void *from, size_t length,
                      uint32_t writer) override;
    int pin(const Region &region) override;
    void forget(const Region &region) override;
    void persist(uint64_t address, size_t length, uint32_t writer) override;
    bool is_persistent(uint64_t address, size_t length) override;
    // Returns true if process_vm_readv() may read the memory; `address` holds Hello::PROBE.
    bool is_accessible(uint64_t address) const;
    void use_thread(std::unique_ptr<MemoryThread> thread) { thread_ = std::move(thread); }
    void add_child(const std::shared_ptr<ProcessMemory> &child) { children_.push_back(child); }
    uint64_t writes() const { return writes_; }
    // For a Burst: accesses ranges one after the other, with `bytes` bytes of data. Returns how
    // many were transferred before an error.
    size_t access_all(const iovec *ranges, size_t count, char *data, size_t bytes,
                      bool is_write);
    void rewrite(uint64_t address, char *data, size_t length) {
        (void)access(address, data, length, true, true);
    }
    ProcessMemory(const ProcessMemory &) = delete;
    ProcessMemory &operator=(const ProcessMemory &) = delete;

  private:
    int check(uint64_t begin, uint64_t end, bool is_written); // EFAULT: not mapped
    bool access_directly(uint64_t address, char *bytes, size_t length, bool is_write,
                         bool is_pinned);
    bool access_by_file(uint64_t address, char *bytes, size_t length, bool is_write);
    bool access(uint64_t address, void *bytes, size_t length, bool is_write, bool is_pinned);
    bool has_history() const { return persistence_ && persistence_->has_history(); }
    void flush_burst() {
        if (burst_)
            burst_->flush();
    }
    bool write_now(uint64_t address, const void *from, size_t length, uint32_t writer,
                   bool is_pinned);
    bool access_by_thread(uint64_t address, char *bytes, size_t length, bool is_write);
    int pid_;
    uint64_t writes_ = 0;
    std::unique_ptr<MemoryThread> thread_; // NULL: the memory is accessed directly
    int file_ = -1, maps_ = -1;            // /proc/PID/mem and maps
    std::vector<std::weak_ptr<ProcessMemory>> children_;
    Persistence *persistence_;
    Burst *burst_;
};

class Server {
  public:
    // `uses_threads`: uses memory threads instead of process_vm_readv().
    // `holds`: a scheduler executes the requests.
    Server(const Options &options, Persistence *persistence, bool uses_threads,
           bool holds = false);
    ~Server();
    Server(const Server &) = delete;
    Server &operator=(const Server &) = delete;
    int listen(const std::string &path); // returns an error number
    // Readable if step() has work other than timers, for which Fabric::next_timer() exists.
    int descriptor() const { return epoll_; }
    // Serves all pending requests. Waits for one until the next timer, but at most `limit`
    // nanoseconds (UINT64_MAX: no limit). Returns true if a client had one.
    bool step(uint64_t limit);
    // Ends the waits of step() also while `fd` is readable; is_woken() then returns true.
    void wake_by(int fd);
    bool is_woken() const { return is_woken_; }
    Fabric &fabric() { return fabric_; }

    // For a scheduler: step() keeps the requests, and time passes only by Fabric::advance().
    // The clients of a process that have a request, in the order of their connection. Each of
    // its threads is a client.
    std::vector<uint64_t> clients_with_request(int pid) const;
    const std::vector<std::byte> *held(uint64_t client) const; // NULL: it has no request
    int execute_held(uint64_t client, Reply &reply); // replies, returns an error number
    // Replies without execution.
    void release_held(uint64_t client) {
        Reply reply;
        release_held(client, reply);
    }
    void release_held(uint64_t client, Reply &reply);
    bool has_client(int pid) const;
    int socket_of(uint64_t client) const; // -1: it is not connected
    void serve(int fd);                   // reads a request of this socket
    uint64_t writes(int pid) const;       // of devices into the memory of the process

    // The numbers of connected processes and of their memory threads.
    size_t processes() const { return clients_.size(); }
    size_t memory_threads() const { return memory_threads_; }
    static uint64_t clock(); // nanoseconds, for Fabric::advance()

  private:
    struct Client {
        Caller caller;
        std::shared_ptr<ProcessMemory> memory;
        Session *session = nullptr; // ends with this connection
        std::vector<std::byte> held;
        uint64_t id = 0;
        uint64_t process = 0; // of a thread: the client of its process
        RequestRing *ring = nullptr;
        uint32_t consumed = 0;           // of the ring, where the process can change it
        int bell = -1;                   // an eventfd: the ring is not empty any more
        unsigned misses = 0;             // how often no request followed soon
        std::vector<uint32_t> credits{}; // the queue pair at each place of the ring
        uint32_t last_queue = 0;         // of the last send without a reply: the queue pair
        uint32_t last_added = 0;         // completions of its CQ, when it was last compared
    };
    void accept_client();
    // ring.cc
    int open_ring(int fd, Client &client, Reply &reply);
    void close_ring(Client &client);
    void serve_ring(int fd);
    void drain_ring(int fd, Client &client);
    // Executes the next request of the ring. Returns false if there is none.
    bool serve_next(int fd, Client &client);
    // Executes those that the ring has now. Returns how many, at most `limit`.
    unsigned serve_burst(int fd, Client &client, unsigned limit);
    bool read_ahead(const Client &client, uint32_t end);
    bool posts_ahead(Client &client);
    void end_burst();
    void add_credit(Client &client, uint32_t handle);
    void require_replies();
    void disconnect(int fd);
    void end_run(int fd, const void *message, int pid); // throws a Failure if the run ends
    void pass_time();
    int descriptor_of(uint64_t client) const; // -1: it has no request
    int join_thread(Client &client, const Client &process, Reply &reply);
    int open_mailbox(int fd, Client &client, Reply &reply);
    int join(Client &client, const Hello &hello, Reply &reply);
    void reply_to(int fd, int error, Reply &reply);
    SharedEnvironment environment_;
    Fabric fabric_;
    Persistence *persistence_;
    bool uses_threads_, holds_;
    int epoll_ = -1, listener_ = -1, wake_ = -1;
    bool is_woken_ = false;
    bool needs_replies_ = false; // every post, because of a fault
    int spare_ = -1;             // a descriptor to reject a client without another one
    std::string path_;           // of the socket, which the destructor removes
    size_t memory_threads_ = 0;
    uint64_t last_client_ = 0;
    std::unordered_map<int, Client> clients_;
};

} // namespace sim
