// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// server.hh -- the fabric for processes that connect through a Unix socket.

#ifndef RPMA_SIM_SERVER_HH
#define RPMA_SIM_SERVER_HH 1

#include "../fabric/fabric.hh"

#include <string>
#include <unordered_map>

namespace sim {

// Creates the descriptors and memory that the fabric shares with processes.
class SharedEnvironment : public Environment {
  public:
    ~SharedEnvironment() override;
    int open_channel(uint32_t channel) override;
    void close_channel(uint32_t channel) override;
    void raise(uint32_t channel) override;
    void lower(uint32_t channel) override;
    Ring *open_ring(size_t bytes, int &fd) override;
    void close_ring(Ring *ring, size_t bytes) override;

  private:
    struct Ends {
        int own, of_process;
    };
    std::unordered_map<uint32_t, Ends> channels_;
};

// The memory of another process.
class ProcessMemory : public Program {
  public:
    ProcessMemory(int pid, Persistence *persistence) : pid_(pid), persistence_(persistence) {}
    ~ProcessMemory() override;
    bool read(uint64_t address, void *to, size_t length) override;
    bool write(uint64_t address, const void *from, size_t length) override;
    int pin(const Mr &mr) override;
    void forget(const Mr &mr) override;
    void persist(uint64_t address, size_t length) override;
    bool is_persistent(uint64_t address, size_t length) override;
    // Is true if process_vm_readv() may read the memory; `address` holds Hello::PROBE.
    bool is_accessible(uint64_t address) const;
    void use_thread(int socket) { thread_ = socket; }

  private:
    bool access(uint64_t address, void *bytes, size_t length, bool is_write);
    bool transfer(void *bytes, size_t length, bool is_write); // to or from the memory thread
    bool access_by_thread(uint64_t address, char *bytes, size_t length, bool is_write);
    int pid_;
    int thread_ = -1; // the socket of the memory thread, or -1
    Persistence *persistence_;
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
    // Serves all pending requests. Waits for one until the next timer, but at most `timeout`
    // milliseconds (-1: no limit).
    void step(int timeout);
    Fabric &fabric() { return fabric_; }

    // For a scheduler: step() keeps the requests, and time passes only by Fabric::advance().
    const std::vector<std::byte> *held(int pid) const; // NULL: the process has no request
    int execute_held(int pid, Reply &reply); // executes, replies, returns an error number
    void release_held(int pid);              // replies without execution
    bool has_client(int pid) const;

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
    };
    void accept_client();
    void serve(int fd);
    void disconnect(int fd);
    void pass_time();
    int client_with_request(int pid) const; // returns its descriptor, or -1
    int join(Client &client, const Hello &hello, Reply &reply);
    void reply_to(int fd, int error, Reply &reply);
    SharedEnvironment environment_;
    Fabric fabric_;
    Persistence *persistence_;
    bool uses_threads_, holds_;
    int epoll_ = -1, listener_ = -1;
    std::string path_; // of the socket, which the destructor removes
    size_t memory_threads_ = 0;
    std::unordered_map<int, Client> clients_;
    std::unordered_map<int, std::weak_ptr<ProcessMemory>> by_pid_;
};

} // namespace sim

#endif // RPMA_SIM_SERVER_HH
