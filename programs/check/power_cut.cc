// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// power_cut.cc -- whether flushed records survive a power cut of the server
//
// The client writes and flushes numbered records into the server's persistent memory, and lists
// in a file which of them are flushed. After the power cut, the server compares its memory with
// that file. The memory has room for a ring of records: record N is at place N modulo their
// number.

#include "wire.hh"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <poll.h>
#include <random>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace {

constexpr size_t RECORD = 4096; // more than a cache line, so that a cut can tear a record
constexpr uint64_t DEPTH = 64;  // records that are not acknowledged yet
constexpr uint64_t LEAST = 4 * DEPTH;
constexpr std::string_view GREETING = "rpma-check power cut 1";
constexpr auto INTERVAL = std::chrono::milliseconds(500); // between lines of the file
constexpr int POLL_MS = 200;
// The loss of the server is noticed after seconds. A retry count of 7 has no limit on some
// devices.
constexpr int ACK_TIMEOUT_MS = 500, RETRIES = 3;

using Bytes = std::array<std::byte, RECORD>;

// ---- records -----------------------------------------------------------------------------

uint64_t mix(uint64_t value) {
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

// Each word depends on the run and on the number: a record of another run, or of an earlier
// pass over the ring, differs in all of them.
void fill(std::byte *record, uint64_t run, uint64_t number) {
    std::array<uint64_t, RECORD / sizeof(uint64_t)> words = {run, number};
    for (size_t i = 2; i < words.size(); i++)
        words[i] = mix(mix(run ^ mix(number)) + i);
    std::memcpy(record, words.data(), RECORD);
}

// ---- the client's file ---------------------------------------------------------------------

// A line that a crash or a defect of the disk has changed has another checksum.
std::string line_of(const std::string &text) {
    uint64_t sum = 0;
    for (const char each : text)
        sum = mix(sum + static_cast<unsigned char>(each) + 1);
    return fmt::format("{} {:016x}\n", text, sum);
}

std::string head_of(uint64_t run, uint64_t records) {
    return line_of(fmt::format("{}: run {:016x}, records {}", GREETING, run, records));
}

// The records before `done` are flushed. No record from `bound` on was posted before the next
// line was on the disk, so the records from `bound` - RECORDS on have not been overwritten.
std::string progress_of(uint64_t done, uint64_t bound) {
    return line_of(fmt::format("{} {}", done, bound));
}

class Ledger {
  public:
    Ledger(const std::string &path, const std::string &head)
        : path_(path), fd_(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {
        if (fd_ < 0)
            fail("cannot create {}: {}", path_, std::strerror(errno));
        try {
            add(head);
        } catch (...) {
            close(fd_);
            unlink(path_.c_str());
            throw;
        }
    }
    Ledger(const Ledger &) = delete;
    ~Ledger() { close(fd_); }

    void add(const std::string &line) {
        for (size_t written = 0; written < line.size();) {
            const ssize_t part = write(fd_, &line[written], line.size() - written);
            if (part < 0 && errno != EINTR)
                fail("cannot write {}: {}", path_, std::strerror(errno));
            written += static_cast<size_t>(std::max<ssize_t>(part, 0));
        }
        while (fdatasync(fd_) != 0)
            if (errno != EINTR)
                fail("cannot sync {}: {}", path_, std::strerror(errno));
    }

  private:
    std::string path_;
    int fd_;
};

struct Progress {
    uint64_t run = 0, records = 0, done = 0, bound = 0;
};

// The last line may be incomplete: the client's machine crashed while it was written.
Progress read_ledger(const std::string &path) {
    std::ifstream file(path);
    if (!file)
        fail("{}: {}", path, std::strerror(errno));
    Progress found;
    size_t number = 0;
    for (std::string line; std::getline(file, line); number++) {
        const bool is_whole = !file.eof();
        line += '\n';
        if (number == 0) {
            if (std::sscanf(line.c_str(), "rpma-check power cut 1: run %lx, records %lu",
                            &found.run, &found.records) != 2)
                fail("{} is not a file of rpma-check --power-cut", path);
            if (head_of(found.run, found.records) != line || found.records < LEAST)
                fail("line 1 of {} is damaged", path);
        } else if (Progress next = found; is_whole) {
            if (std::sscanf(line.c_str(), "%lu %lu", &next.done, &next.bound) != 2 ||
                progress_of(next.done, next.bound) != line || next.done < found.done ||
                next.bound < next.done)
                fail("line {} of {} is damaged", number + 1, path);
            found = next;
        }
    }
    if (number == 0)
        fail("{} is not a file of rpma-check --power-cut", path);
    return found;
}

// ---- memory --------------------------------------------------------------------------------

class Mapping {
  public:
    Mapping(const std::string &path, bool is_target) {
        const int fd = open(path.c_str(), (is_target ? O_RDWR : O_RDONLY) | O_CLOEXEC);
        struct stat status {};
        if (fd < 0 || fstat(fd, &status) != 0) {
            const int error = errno;
            if (fd >= 0)
                close(fd);
            fail("{}: {}", path, std::strerror(error));
        }
        map(fd, status, is_target);
        const int error = errno;
        close(fd);
        if (!bytes)
            fail("{} {}: {}", path,
                 is_target
                     ? "is not persistent memory, a device DAX or a file on a file system "
                       "that is mounted with dax"
                     : "cannot be mapped",
                 size == 0 ? "it has no size" : std::strerror(error));
    }
    Mapping(const Mapping &) = delete;
    ~Mapping() { munmap(bytes, size); }

    std::byte *bytes = nullptr;
    size_t size = 0;

  private:
    // Only persistent memory can be mapped with MAP_SYNC; a device DAX needs no flag.
    void map(int fd, const struct stat &status, bool is_target) {
        const bool is_device = S_ISCHR(status.st_mode);
        size = static_cast<size_t>(status.st_size);
        if (is_device)
            std::ifstream(fmt::format("/sys/dev/char/{}:{}/size", major(status.st_rdev),
                                      minor(status.st_rdev))) >>
                size;
        errno = ENODEV;
        if (size == 0 || (!is_device && !S_ISREG(status.st_mode)))
            return;
        const int flags = is_target && !is_device ? MAP_SHARED_VALIDATE | MAP_SYNC : MAP_SHARED;
        void *const place =
            mmap(nullptr, size, is_target ? PROT_READ | PROT_WRITE : PROT_READ, flags, fd, 0);
        bytes = place == MAP_FAILED ? nullptr : static_cast<std::byte *>(place);
    }
};

// ---- waiting -------------------------------------------------------------------------------

// Waits for the descriptor. Returns false after a signal.
bool wait_for(int fd) {
    pollfd descriptor = {fd, POLLIN, 0};
    while (!is_stopping())
        if (poll(&descriptor, 1, POLL_MS) > 0)
            return true;
    return false;
}

// Waits for the next event. Returns RPMA_CONN_UNDEFINED after a signal.
rpma_conn_event next_event(rpma::conn &conn) {
    while (wait_for(conn.get_event_fd()))
        if (const auto event = conn.next_event())
            return *event;
    return RPMA_CONN_UNDEFINED;
}

// ---- the client ----------------------------------------------------------------------------

class Writer {
  public:
    Writer(rpma::conn &conn, rpma::peer &peer, rpma::mr_remote &target, uint64_t run,
           bool flushes)
        : conn_(conn), cq_(conn.get_cq()), target_(target),
          records_(target.get_size() / RECORD), run_(run), flushes_(flushes), buffers_(DEPTH),
          source_(peer, std::as_writable_bytes(std::span(buffers_)), RPMA_MR_USAGE_WRITE_SRC) {}

    // Writes until the server is lost, or a signal ends the program.
    void run(Ledger &ledger) {
        auto last_line = std::chrono::steady_clock::now();
        uint64_t bound = records_ / 2;
        ledger.add(progress_of(0, bound));
        while (!is_stopping() && !is_lost_) {
            while (!is_lost_ && posted_ < std::min(done_ + DEPTH, bound))
                post();
            take_completions();
            const auto now = std::chrono::steady_clock::now();
            if (posted_ == bound || now - last_line > INTERVAL) {
                bound = done_ + records_ / 2;
                ledger.add(progress_of(done_, bound));
                last_line = now;
            }
        }
        ledger.add(progress_of(done_, posted_));
    }
    uint64_t done() const { return done_; }
    const std::string &reason() const { return reason_; }

  private:
    void post() {
        const size_t slot = posted_ % DEPTH, place = posted_ % records_ * RECORD;
        fill(buffers_[slot].data(), run_, posted_);
        auto status =
            conn_.write(target_, place, source_, slot * RECORD, RECORD,
                        flushes_ ? RPMA_F_COMPLETION_ON_ERROR : RPMA_F_COMPLETION_ALWAYS);
        if (flushes_ && status == rpma::status::ok)
            status = conn_.flush(target_, place, RECORD, RPMA_FLUSH_TYPE_PERSISTENT,
                                 RPMA_F_COMPLETION_ALWAYS);
        if (status != rpma::status::ok)
            lose(rpma_err_2str(static_cast<int>(status)));
        else
            posted_++;
    }

    // The completions are in the order of the requests.
    void take_completions() {
        std::array<ibv_wc, DEPTH> wcs;
        int count = 0;
        if (is_lost_ || posted_ == done_)
            return;
        const auto status = rpma::status(rpma_cq_get_wc(cq_.get(), DEPTH, wcs.data(), &count));
        if (status == rpma::status::no_completion)
            (void)cq_.wait(); // a signal ends it
        else if (status != rpma::status::ok)
            lose(rpma_err_2str(static_cast<int>(status)));
        for (int i = 0; i < count && !is_lost_; i++)
            if (wcs[static_cast<size_t>(i)].status == IBV_WC_SUCCESS)
                done_++;
            else
                lose(ibv_wc_status_str(wcs[static_cast<size_t>(i)].status));
    }

    void lose(const char *reason) {
        is_lost_ = true;
        reason_ = reason;
    }

    rpma::conn &conn_;
    rpma::cq_ref cq_;
    rpma::mr_remote &target_;
    const uint64_t records_, run_;
    const bool flushes_;
    uint64_t posted_ = 0, done_ = 0;
    bool is_lost_ = false;
    std::string reason_;
    std::vector<Bytes> buffers_;
    rpma::mr_local source_;
};

} // namespace

int write_records(const Options &options) {
    handle_stop_signals();
    rpma::peer peer(rpma::get_ibv_context(options.address, RPMA_UTIL_IBV_CONTEXT_REMOTE));
    rpma::conn_cfg cfg;
    cfg.set_sq_size(2 * DEPTH).set_cq_size(2 * DEPTH).set_rq_size(1);
    cfg.set_ack_timeout(ACK_TIMEOUT_MS).set_retry_count(RETRIES);
    rpma::conn conn = rpma::conn_req(peer, options.address, options.port, cfg.get()).connect();
    if (const auto event = next_event(conn); event != RPMA_CONN_ESTABLISHED)
        fail("{} port {}: no connection: {}", options.address, options.port,
             rpma_utils_conn_event_2str(event));
    rpma::received server = rpma::unpack(conn.get_private_data());
    if (server.regions.size() != 1 || !server.pcfg ||
        std::string_view(reinterpret_cast<const char *>(server.bytes.data()),
                         server.bytes.size()) != GREETING)
        fail("{} port {} is not rpma-check --server --power-cut of this version",
             options.address, options.port);
    conn.apply_remote_peer_cfg(*server.pcfg);
    rpma::mr_remote target = std::move(server.regions[0]);
    std::random_device random;
    const uint64_t run = uint64_t{random()} << 32 | random();
    Ledger ledger(options.power_cut, head_of(run, target.get_size() / RECORD));
    Writer writer(conn, peer, target, run, !options.no_flush);
    fmt::print("writing into the server's memory: cut the power of the server\n");
    (void)std::fflush(stdout);
    writer.run(ledger);
    fmt::print("{} records {}, listed in {}: {}\n", writer.done(),
               options.no_flush ? "written without a flush" : "flushed",
               one_line(options.power_cut),
               is_stopping() ? "interrupted" : "the server is lost: " + writer.reason());
    return EXIT_AS_EXPECTED;
}

int serve_records(const Options &options) {
    handle_stop_signals();
    const Mapping memory(options.power_cut, true);
    if (memory.size < LEAST * RECORD)
        fail("{} has {} bytes; the check needs {} or more", options.power_cut, memory.size,
             LEAST * RECORD);
    rpma::peer peer(rpma::get_ibv_context(options.address, RPMA_UTIL_IBV_CONTEXT_LOCAL));
    rpma::mr_local mr(peer, memory.bytes, memory.size,
                      RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY |
                          RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT);
    rpma::peer_cfg pcfg;
    pcfg.set_direct_write_to_pmem(true).set_served_by(peer); // what the check is about
    rpma::ep ep(peer, options.address, options.port);
    fmt::print("{} is overwritten by one client\n", one_line(options.power_cut));
    (void)std::fflush(stdout);
    while (wait_for(ep.get_fd())) {
        std::optional<rpma::conn_req> request = ep.next_conn_req();
        if (!request)
            continue;
        rpma::conn conn = std::move(*request).connect(
            rpma::packed({mr}, pcfg.get(), std::as_bytes(std::span(GREETING))));
        auto event = next_event(conn);
        while (event == RPMA_CONN_ESTABLISHED)
            event = next_event(conn);
        if (event == RPMA_CONN_CLOSED || event == RPMA_CONN_LOST)
            fmt::print("the client has ended\n");
        return EXIT_AS_EXPECTED;
    }
    return EXIT_AS_EXPECTED;
}

int verify_records(const Options &options) {
    const Progress wanted = read_ledger(options.verify);
    const Mapping memory(options.memory, false);
    if (memory.size / RECORD < wanted.records)
        fail("{} has {} bytes; {} is about {}", options.memory, memory.size, options.verify,
             wanted.records * RECORD);
    Bytes expected;
    uint64_t checked = 0, missing = 0, first = 0;
    for (uint64_t number = wanted.bound - std::min(wanted.bound, wanted.records);
         number < wanted.done; number++, checked++) {
        fill(expected.data(), wanted.run, number);
        if (std::memcmp(memory.bytes + number % wanted.records * RECORD, expected.data(),
                        RECORD) != 0 &&
            missing++ == 0)
            first = number;
    }
    if (checked == 0)
        fail("{} lists no flushed record that is still in the memory", options.verify);
    fmt::print("{} records flushed, {} checked, {} missing{}\n", wanted.done, checked, missing,
               missing == 0 ? ""
                            : fmt::format(", first record {} at byte {}", first,
                                          first % wanted.records * RECORD));
    return missing == 0 ? EXIT_AS_EXPECTED : EXIT_DIFFERENCES;
}
