// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// fabric.hh -- the model of hosts with RDMA devices on one network.

#pragma once

#include "cm.hh"
#include "objects.hh"
#include "scheduler.hh"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <span>

namespace sim {

struct Options {
    unsigned hosts = 2;
    const sim_profile *profile = nullptr;            // of the devices of all hosts
    std::map<unsigned, const sim_profile *> of_host; // except these
    sim_platform platform = SIM_DIRECT_WRITE;        // of the memory rule
    bool has_fs_dax = false; // persistent memory is files on FS-DAX, not device DAX
    uint64_t seed = 1;
    Scheduler *scheduler = nullptr; // NULL: no choices
    Weaknesses strong;              // the weaknesses that are off
};

std::optional<sim_platform> find_platform(std::string_view name);

// What happens to a datagram.
enum class Fate { ARRIVES, LOST, REPEATED, LATE };

// A process that is connected to the fabric.
struct Caller {
    std::shared_ptr<Program> program;
    Session *session = nullptr; // NULL until Hello
    bool owns_session = false;  // it created the session; a child of fork() joins it
    int pid = 0;
    uint32_t unanswered = 0; // units of a send without a reply; 0: the request has one
};

struct Reply {
    std::vector<std::byte> bytes;
    int descriptor = -1;            // passed to the process, which closes it
    int bell = -1;                  // another one, of OpenRing
    bool closes_descriptor = false; // the server closes its copy after passing it
    template <class T> T &as() { return as_at<T>(0); }
    template <class T> T &as_at(size_t offset) {
        if (bytes.size() < offset + sizeof(T))
            bytes.resize(offset + sizeof(T));
        return *reinterpret_cast<T *>(bytes.data() + offset);
    }
};

// Returns true for a request to the kernel of a host, not to a device. It needs no session, and
// a scheduler executes it at once.
inline bool is_from_system(uint32_t op) {
    return op == OP_READ_COUNTER || op == OP_NETLINK;
}

struct MemoryRange;

class Fabric {
  public:
    Fabric(Environment &its_environment, const Options &options);
    ~Fabric();

    // ---- requests ----
    // Executes a request of protocol.hh; returns an error number. `reply` has no ReplyHead.
    int call(Caller &caller, const void *request, size_t length, Reply &reply);
    // A process that joined a session has ended, with all children that inherited its
    // descriptors.
    void end_process(const Caller &caller);
    // The process that created the session has ended, with all children that inherited it.
    void end_session(Session &session);

    // ---- bursts ----
    // Until the end, completions and writes to pinned memory become visible together: all
    // before the next event, and before anything else reads memory.
    void begin_burst() { is_burst_ = true; }
    void end_burst() {
        if (is_burst_)
            show_burst();
        is_burst_ = false;
    }
    void publish(Cq &cq); // Cq::added has changed

    // ---- time: nanoseconds, which never decrease ----
    void advance(uint64_t now);  // runs all timers that are due
    uint64_t next_timer() const; // UINT64_MAX: no timer
    // A deadline is a timer that ends a wait for a live program, after minutes: none of the
    // fabric's own steps depends on it, so next_timer() does not count it.
    uint64_t next_deadline() const;
    uint64_t next_time() const { return std::min(next_timer(), next_deadline()); }
    uint64_t now() const { return now_; }
    uint64_t at(uint64_t time, std::function<void()> action); // returns a number for cancel()
    uint64_t set_deadline(uint64_t time, std::function<void()> action); // the same
    void cancel(uint64_t timer); // no effect if it has run
    // Is called repeatedly while many objects are destroyed. May throw to end the program.
    void set_between_steps(std::function<void()> function) {
        between_steps_ = std::move(function);
    }
    // Is called before each request of a session. Returns false if its process has ended: then
    // it is not executed.
    using BeforeCall = std::function<bool(const Caller &, std::span<const std::byte>)>;
    void set_before_call(BeforeCall function) { before_call_ = std::move(function); }
    // Returns true if a fault may change the result of a call.
    bool needs_replies() const {
        return before_call_ || !failures_.empty() || !refusals.empty();
    }
    uint64_t random(uint64_t below) { return generator_() % below; }

    // ---- faults: hosts are numbered from 1, devices from 0 ----
    void cut(unsigned host, unsigned other, bool is_cut);      // the link between two hosts
    void cut_one_way(unsigned from, unsigned to, bool is_cut); // no message arrives at `to`
    void set_port(unsigned host, unsigned device, bool is_up); // raises the asynchronous event
    void set_delay(unsigned host, unsigned other, uint64_t one_way); // in both directions
    // Before a process is killed: what its queue pairs have received becomes visible, and the
    // next write to each is executed in part.
    void interrupt_writes(int pid);
    void set_power(unsigned host, bool has_power); // a host without power executes nothing
    // Refuses the nth request that the host posts from now on. With 0, the next list of sends
    // is queued, and its post returns the error.
    void refuse_post(unsigned host, unsigned nth, int error);
    void fail_call(unsigned host, uint32_t op, unsigned nth, int error); // the nth from now on
    void change_datagram(unsigned host, unsigned nth, Fate fate); // the nth that it sends
    void lose_cm_message(unsigned host, unsigned nth);            // it is repeated later
    void poison(unsigned host); // memory of a region: the next that a remote request reads
    bool is_poisoned(const Device &device, const MemoryRange &place);
    void clear_poison(const MemoryRange &place); // it was written
    void overrun_cqs(unsigned host);             // overruns every CQ and raises its event
    void raise_async(unsigned host, unsigned device,
                     ibv_event_type type); // for all objects of the device
    void raise_async(Object &about, ibv_event_type type);
    void change_address(unsigned host, unsigned device);
    void remove_device(unsigned host, unsigned device);
    void replace_device(unsigned host,
                        unsigned device); // after its removal; the new one has its addresses

    // ---- for the connection manager ----
    const Options &options() const { return options_; }
    std::vector<std::unique_ptr<Host>> &hosts() { return hosts_; }
    Host *host(unsigned number) {
        return number - 1 < hosts_.size() ? hosts_[number - 1].get() : nullptr;
    }
    Device *device(unsigned host, unsigned index); // NULL: no such device
    Device *device_of(const ibv_gid &gid);
    Device *device_at(const ibv_ah_attr &address);
    // Returns true if the messages of a device arrive at the other one.
    bool reachable(const Device &device, const Device &other) const;
    bool reachable(unsigned from, unsigned to) const; // the packets of a host
    uint64_t delay(const Device &device, const Device &other) const;
    bool loses_cm_message(const Device &device); // this one, by lose_cm_message()
    Scheduler &scheduler() { return *scheduler_; }
    bool has(Weakness weakness) const {
        return !options_.strong[static_cast<size_t>(weakness)];
    }
    // Returns the same. The weakness then has an effect, which shown() reports.
    bool shows(Weakness weakness) {
        if (has(weakness))
            shown_.set(static_cast<size_t>(weakness));
        return has(weakness);
    }
    // Returns 0 for the effect of the strong model, or the number of another one, up to
    // `options`.
    unsigned choose(Weakness weakness, unsigned options) {
        const unsigned chosen = has(weakness) ? scheduler_->choose(weakness, options) : 0;
        if (chosen != 0)
            (void)shows(weakness);
        return chosen;
    }
    bool has_choices() const { return scheduler_ != &no_choices_; }
    const Weaknesses &shown() const { return shown_; }
    // Returns NULL if the session owns no such object of this kind.
    template <class T> T *find(const Session *session, uint32_t handle) {
        const auto found = objects_.find(handle);
        if (found == objects_.end() || found->second->kind != T::KIND ||
            found->second->session != session)
            return nullptr;
        return static_cast<T *>(found->second.get());
    }
    // Creates an object that the session owns.
    template <class T, class... Args> T *create(Session *session, Args... args) {
        auto made = std::make_unique<T>(args...);
        T *const object = made.get();
        object->handle = next_handle_++;
        object->session = session;
        objects_.emplace(object->handle, std::move(made));
        return object;
    }
    void destroy(Object &object); // even if it is in use; removes its events
    void destroy_all(const std::function<bool(const Object &)> &matches);
    void discard(const Object &object) { objects_.erase(object.handle); } // not yet in use
    Channel *create_channel(Session *session, Channel::Purpose purpose, Reply &reply);
    void push(Channel &channel, Event event);
    // Takes the first event after the process read the byte. Returns false if there is none.
    bool take(Channel &channel, Event &event);
    void remove_events(Object &about);
    const std::vector<Qp *> &members_of(const ibv_gid &group) const; // the attached QPs
    int attach(Qp &qp, const ibv_gid &group);
    int detach(Qp &qp, const ibv_gid &group);
    int modify_qp(Qp &qp, const ibv_qp_attr &attr, int mask);
    Mr *mr_of(uint32_t key) const { // NULL: no region has the key
        const auto found = keys.find(key);
        return found == keys.end() ? nullptr : found->second;
    }
    // The window with this index, which is the key without its last byte; NULL: there is none.
    Mw *mw_of(uint32_t key) const {
        const auto found = windows.find(key >> 8);
        return found == windows.end() ? nullptr : found->second;
    }
    // Returns the reason why requests of the domain must not access the memory of an SGE, or
    // SIM_NO_FAULT. `mr` is the region with its key, or NULL.
    static sim_fault check_range(const Mr *mr, const ibv_sge &sge, const Pd *pd,
                                 unsigned access);
    const std::map<uint32_t, std::unique_ptr<Object>> &objects() const { return objects_; }
    template <class T> T *find(uint32_t handle) { // of any session; NULL: none of this kind
        const auto found = objects_.find(handle);
        const bool is_one = found != objects_.end() && found->second->kind == T::KIND;
        return is_one ? static_cast<T *>(found->second.get()) : nullptr;
    }
    void connect_iwarp(Qp &qp, Qp &peer); // moves both to RTS
    Qp *find_qp(const Device &device, uint32_t number);
    Qp *peer_of(const Qp &qp); // NULL: not connected, or to a QP with another peer
    Cm &cm() { return cm_; }
    static ibv_port_attr port_of(const Device &device);
    static void count_mad(Device &from, Device *to); // `to`: NULL if it is lost
    // Counts the attempts of requests that wait, up to now. It precedes read_counter().
    void count_attempts();
    uint64_t read_counter(const Device &device, const DriverCounter &counter) const;
    Fate fate_of_datagram(unsigned host); // of the next one that it sends
    bool has_cuts() const { return !cut_.empty(); }

    // ---- objects by key or number, and state of the execution ----
    std::map<uint32_t, std::unique_ptr<Session>> sessions;
    std::map<uint32_t, Mr *> keys;
    std::map<uint32_t, Mw *> windows; // by the index of their keys
    std::map<uint32_t, Qp *> qps;     // by number
    std::set<uint32_t> no_receive;    // numbers of QPs whose peer has no receive
    struct Refusal {
        unsigned nth;
        int error;
    };
    std::map<unsigned, Refusal> refusals; // by host
    std::vector<LateWord> late_words;     // in the order of execution
    uint64_t next_late_write = 1;
    uint32_t next_session = 1, next_key = 1, next_qp = 17;
    Environment &environment;

  private:
    void show_burst();
    void links_changed(); // what waits for a link may arrive now
    // A fault of the nth message or call.
    struct Countdown {
        unsigned host, nth;
        uint32_t op = 0; // of fail_call()
        int error = 0;
        Fate fate = Fate::ARRIVES;
    };
    // Counts the faults of a host down. Returns true, and removes one, if its count has ended.
    static bool is_next(std::vector<Countdown> &all, unsigned host, uint32_t op,
                        Countdown &found);
    int fail_by_fault(const Caller &caller, uint32_t op);
    void add_device(Host &host, unsigned number, const sim_profile &profile);
    static constexpr unsigned OBJECTS_OF_STEP = 256;
    std::function<void()> between_steps_;
    Options options_;
    Scheduler no_choices_;
    Scheduler *scheduler_;
    Weaknesses shown_;
    std::mt19937_64 generator_;
    uint64_t now_ = 0;
    const Caller *caller_ = nullptr; // of the request
    bool is_burst_ = false;
    std::vector<Cq *> unpublished_; // CQs, in a burst
    uint64_t next_timer_ = 1;
    uint32_t next_handle_ = 1;
    using Timers = std::map<std::pair<uint64_t, uint64_t>, std::function<void()>>;
    uint64_t add(Timers &timers, uint64_t time, std::function<void()> action);
    Timers timers_, deadlines_; // by time and number
    std::map<uint64_t, uint64_t> timer_times_;
    std::vector<std::unique_ptr<Host>> hosts_;
    std::multimap<std::pair<uint64_t, uint64_t>, Device *> by_gid_;
    std::map<uint32_t, std::unique_ptr<Object>> objects_;
    std::map<std::pair<uint64_t, uint64_t>, std::vector<Qp *>> groups_; // by GID
    std::set<std::pair<unsigned, unsigned>> cut_; // pairs of sender and receiver
    std::map<std::pair<unsigned, unsigned>, uint64_t> delays_;
    struct Poison {
        unsigned host;
        const Program *program; // NULL: no range was read yet
        uint64_t begin;
    };
    static constexpr uint64_t POISONED_BYTES = 256;
    std::vector<Poison> poisons_;
    std::vector<Countdown> failures_, fates_, lost_messages_;
    BeforeCall before_call_;
    Cm cm_;
};

} // namespace sim
