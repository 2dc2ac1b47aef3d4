// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// replicated_log.cc -- the invariants of example 14: no committed record is lost or changed,
// and no power failure leaves a damaged log. It parses a log by the description of the format
// in log.h, independently of log.c.

#include "simulation.hh"

#include <algorithm>
#include <array>
#include <cstring>

namespace {

// ---- the format of the log

constexpr size_t TAIL_PLACE = 0, EPOCH_PLACE = 8, FIXED_BEGIN = 16, FIXED_END = 32,
                 IDENTITY_PLACE = 40;
constexpr size_t LOG_BEGIN = 64, PAYLOAD_MAX = 65536, RECORD_HEADER = 24;
// The part of the header that never changes: signature, version, size.
constexpr char FIXED[] = "RPMALOG\0\x04\0\0\0\0\0\x80";

uint32_t crc32c(const char *data, size_t size) {
    static const auto table = [] {
        std::array<uint32_t, 256> made{};
        for (uint32_t i = 0; i < 256; i++) {
            made[i] = i;
            for (int bit = 0; bit < 8; bit++)
                made[i] = made[i] >> 1 ^ (made[i] & 1 ? 0x82f63b78 : 0);
        }
        return made;
    }();
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < size; i++)
        crc = crc >> 8 ^ table[(crc ^ static_cast<unsigned char>(data[i])) & 0xff];
    return ~crc;
}

bool is_log(const char *image) {
    uint32_t checksum;
    memcpy(&checksum, image + FIXED_END, sizeof(checksum));
    return !memcmp(image + FIXED_BEGIN, FIXED, FIXED_END - FIXED_BEGIN) &&
           checksum == crc32c(FIXED, FIXED_END - FIXED_BEGIN);
}

// Returns the number in a word of the header, or UINT64_MAX if its checksum is wrong.
uint64_t number_of(size_t place, uint64_t word) {
    const uint64_t sealed[] = {place, word & UINT32_MAX};
    bool good = crc32c(reinterpret_cast<const char *>(sealed), sizeof(sealed)) == word >> 32;
    return good ? sealed[1] : UINT64_MAX;
}

struct Record {
    size_t end;
    uint64_t epoch;
    uint32_t checksum;
};

// Reads the record at `begin`. Returns false if it is incomplete or damaged.
bool read_record(const char *image, size_t begin, uint64_t number, Record &record) {
    uint32_t size;
    uint64_t found;
    memcpy(&record.checksum, image + begin, 4);
    memcpy(&size, image + begin + 4, 4);
    memcpy(&found, image + begin + 8, 8);
    memcpy(&record.epoch, image + begin + 16, 8);
    record.end = begin + (RECORD_HEADER + size + WORD - 1) / WORD * WORD;
    return size <= PAYLOAD_MAX && found == number &&
           crc32c(image + begin + 4, RECORD_HEADER - 4 + size) == record.checksum;
}

// The log of the foreign servers, of which a third one is not simulated. Its epoch is larger
// than any of the clients here.
constexpr uint64_t FOREIGN_IDENTITY = 0x12345673, FOREIGN_EPOCH = 1 << 30;

// ---- creating logs

using Image = std::string;

void set_number(Image &image, size_t place, uint64_t number) {
    const uint64_t sealed[] = {place, number};
    uint64_t word =
        uint64_t{crc32c(reinterpret_cast<const char *>(sealed), sizeof(sealed))} << 32 | number;
    memcpy(image.data() + place, &word, sizeof(word));
}

Image empty_log(uint64_t epoch, uint64_t identity) {
    Image image(LOG_BEGIN, '\0');
    const uint32_t checksum = crc32c(FIXED, FIXED_END - FIXED_BEGIN);
    memcpy(image.data() + FIXED_BEGIN, FIXED, FIXED_END - FIXED_BEGIN);
    memcpy(image.data() + FIXED_END, &checksum, sizeof(checksum));
    set_number(image, TAIL_PLACE, LOG_BEGIN);
    set_number(image, EPOCH_PLACE, epoch);
    set_number(image, IDENTITY_PLACE, identity);
    return image;
}

// Appends a record of `space` bytes and moves the tail to its end.
void add_record(Image &image, size_t space, uint64_t number, uint64_t epoch) {
    const uint64_t head[] = {(space - RECORD_HEADER) << 32, number, epoch};
    Image record(reinterpret_cast<const char *>(head), sizeof(head));
    record.resize(space, 'x');
    const uint32_t checksum = crc32c(record.data() + 4, space - 4);
    memcpy(record.data(), &checksum, sizeof(checksum));
    image += record;
    set_number(image, TAIL_PLACE, image.size());
}

void set_memory(Memory &memory, const Image &image) {
    memory.reset();
    memcpy(memory.visible(), image.data(), image.size());
    memory.persist(0, std::max(image.size(), WORD));
}

// ---- the current state

constexpr int PATIENCE_MS = 500; // how long a client waits for a server

struct Committed {
    uint64_t number;
    uint32_t checksum;
};
std::vector<Committed> committed;
bool log_exists;                            // the operator assumes that the log exists
std::vector<const Process *> misconfigured; // clients that were started with the wrong servers

bool is_misconfigured(const Process &process) {
    return std::ranges::find(misconfigured, &process) != misconfigured.end();
}

// Returns true if the foreign servers have no log.
bool are_blank(const Configuration &used) {
    return used.name == "log-3-begun";
}

// Is true for a second server of the first server's log.
bool is_second_server(const Process &process) {
    return simulation.configuration->first_client &&
           process.index == simulation.configuration->servers;
}

// The records of a server in one image: the visible one, or the persistent one.
struct HeldRecords {
    uint64_t changes;
    std::vector<uint32_t> checksums;
};
std::vector<std::array<HeldRecords, 2>> held_records;

void read_log(const Process &server, bool persistent, std::vector<uint32_t> &checksums) {
    const Memory &memory = server.machine->memory;
    const char *image = memory.image(persistent), *name = server.name.c_str();
    checksums.clear();
    if (!is_log(image) || (persistent && !memory.is_certain(FIXED_BEGIN, FIXED_END + 4)))
        return;
    size_t first = MEMORY_SIZE, last = 0, certain = 0;
    memory.each_outcome(persistent, TAIL_PLACE, [&](uint64_t word) {
        size_t tail = number_of(TAIL_PLACE, word);
        if (tail < LOG_BEGIN || tail > MEMORY_SIZE || tail % WORD)
            simulation.fail("%s: the tail is damaged", name);
        first = std::min(first, tail);
        last = std::max(last, tail);
    });
    bool counts = false;
    memory.each_outcome(persistent, EPOCH_PLACE, [&](uint64_t word) {
        const uint64_t epoch = number_of(EPOCH_PLACE, word);
        if (epoch > UINT32_MAX)
            simulation.fail("%s: the epoch is damaged", name);
        if (simulation.configuration->foreign && epoch > FOREIGN_EPOCH &&
            server.index < simulation.configuration->log_servers())
            simulation.fail("%s: stores the epoch of a client of another log", name);
        counts |= epoch > 0;
    });
    memory.each_outcome(persistent, IDENTITY_PLACE, [&](uint64_t word) {
        const uint64_t identity = number_of(IDENTITY_PLACE, word);
        if (identity > UINT32_MAX)
            simulation.fail("%s: the identity is damaged", name);
        if (counts && !identity)
            simulation.fail("%s: the log has an epoch but no identity", name);
    });
    if (!simulation.finding.empty())
        return;
    Record record{LOG_BEGIN, 0, 0};
    for (size_t begin = LOG_BEGIN; begin < last; begin = record.end) {
        uint64_t epoch = record.epoch;
        bool whole = read_record(image, begin, checksums.size(), record) &&
                     record.epoch >= epoch && record.end <= last;
        if (!whole || (persistent && !memory.is_certain(begin, record.end)))
            return simulation.fail("%s: record %zu is before the tail, but %s", name,
                                   checksums.size(),
                                   persistent ? "a power failure may damage it" : "damaged");
        checksums.push_back(record.checksum);
        if (record.end <= first)
            certain = checksums.size();
    }
    checksums.resize(certain);
}

// Returns true if a server has no valid log, or if a power failure can leave none.
bool has_no_log(const Process &server) {
    const Memory &memory = server.machine->memory;
    bool is_missing = !is_log(memory.image(false));
    memory.each_outcome(true, EPOCH_PLACE, [&](uint64_t word) {
        uint64_t epoch = number_of(EPOCH_PLACE, word);
        is_missing |= epoch == 0 || epoch > UINT32_MAX;
    });
    return is_missing;
}

unsigned count_without_log() {
    unsigned count = 0;
    for (unsigned i = 0; i < simulation.configuration->servers; i++)
        count += has_no_log(*simulation.processes[i]);
    return count;
}

// Only a minority may be without a log at a time.
bool may_lose_memory(const Process &server) {
    unsigned plain = simulation.configuration->plain;
    return (plain || !has_no_log(server)) &&
           count_without_log() < (simulation.configuration->servers - 1) / 2 + plain;
}

void check() {
    unsigned servers = simulation.configuration->log_servers();
    unsigned missing = simulation.configuration->loses_memory ? count_without_log() : 0;
    for (unsigned i = 0; i < simulation.configuration->servers; i++) {
        Process &server = *simulation.processes[i];
        for (int persistent = 0; persistent < 2; persistent++) {
            HeldRecords &holding = held_records[i][static_cast<size_t>(persistent)];
            if (holding.changes == server.machine->memory.changes())
                continue;
            server.machine->memory.find_own_stores();
            read_log(server, persistent, holding.checksums);
            holding.changes = server.machine->memory.changes();
        }
    }
    for (const Committed &record : committed)
        for (size_t persistent = 0; persistent < 2 && simulation.finding.empty();
             persistent++) {
            unsigned holders = 0;
            for (const auto &holding : held_records) {
                const auto &checksums = holding[persistent].checksums;
                holders += record.number < checksums.size() &&
                           checksums[record.number] == record.checksum;
            }
            if (holders + missing <= servers / 2)
                simulation.fail("record %zu was committed, but only %u of %u servers %s",
                                static_cast<size_t>(record.number), holders, servers,
                                persistent ? "keep it after a power failure" : "hold it");
        }
}

void begin() {
    committed.clear();
    misconfigured.clear();
    log_exists = false;
    held_records.assign(simulation.configuration->servers, {});
    Image foreign = empty_log(FOREIGN_EPOCH, FOREIGN_IDENTITY);
    for (uint64_t number = 0; number < 5; number++)
        add_record(foreign, 64, number, FOREIGN_EPOCH);
    const Configuration &used = *simulation.configuration;
    for (unsigned i = used.log_servers(); i < used.servers && !are_blank(used); i++)
        set_memory(simulation.machines[i]->memory, foreign);
}

void on_line(Process &process, const char *line) {
    const Configuration &used = *simulation.configuration;
    unsigned long long number;
    unsigned checksum, members, of;
    if (is_second_server(process))
        return simulation.fail("serves a log that another server serves: %s", line);
    if (is_misconfigured(process) && strstr(line, "machine-of-server3 has all"))
        return simulation.fail("changes a server of another log: %s", line);
    if (is_misconfigured(process)) // the reader does not read the log of this line
        return simulation.client_lines.pop_back();
    if (sscanf(line, "client: %llu records, %u of %u", &number, &members, &of) == 3) {
        auto has_all = [number](const auto &holding) {
            return holding[1].checksums.size() >= number;
        };
        check();
        if (of != used.log_servers() ||
            (!used.loses_memory &&
             members > std::ranges::count_if(held_records, has_all) + int64_t{used.plain}))
            simulation.fail("fewer servers have all records: %s", line);
    }
    if (sscanf(line, "server: the log has %llu records, all right", &number) == 1) {
        check();
        if (!used.plain && number != held_records[process.index][0].checksums.size())
            simulation.fail("reports a wrong number of records: %s", line);
        process.has_reported_records = true;
    }
    size_t bytes;
    if (sscanf(line, "client: server %*s has all %llu records, %zu bytes", &number, &bytes) ==
            2 &&
        bytes > number * 64) // the size of the longest record
        simulation.fail("reports more missing bytes than the log has: %s", line);
    const End *lost = lost_end(process, line);
    if (lost && strstr(line, "it does not reply") &&
        simulation.now <= std::max(lost->received_at, lost->posted_at) + PATIENCE_MS)
        simulation.fail("abandons a server before the time limit: %s", line);
    process.has_unreported_disconnect &= !strstr(line, "a client disconnected");
    if (strstr(line, "a queue has no room"))
        simulation.fail("overruns its send queue: %s", line);
    bool is_committed = sscanf(line, "committed %llu %x", &number, &checksum) == 2;
    if (!is_committed && sscanf(line, "replicated %llu", &number) != 1)
        return;
    if (!is_committed && !used.plain)
        simulation.fail("all servers are persistent, but: %s", line);
    process.committed++;
    log_exists = true;
    if (is_committed)
        committed.push_back({number, checksum});
    check();
}

// A client must commit each of its lines, or end with an error message.
void on_end(Process &process) {
    if (is_second_server(process)) {
        if (process.errors.find("another process uses") == std::string::npos)
            simulation.fail("is not refused: %s", process.first_error().c_str());
        return;
    }
    if (process.is_server && (process.status || !process.stop_requested))
        simulation.fail("ends with status %d: %s", process.status,
                        process.first_error().c_str());
    else if (process.is_server && !process.has_reported_records)
        simulation.fail("succeeds without reporting its number of records");
    if (!process.is_server && !process.status && !is_misconfigured(process) &&
        process.committed < process.lines_read)
        simulation.fail("succeeds after %zu lines, but committed %u records",
                        process.lines_read, process.committed);
    if (process.logged)
        simulation.fail(
            "causes an error in the log for a server that is expected to be unreachable");
    log_exists |= process.errors.find("start without --new") != std::string::npos;
    if (process.status && process.errors.empty())
        simulation.fail("ends with status %d without an error message", process.status);
}

// Before a program waits, it must delete connections that have ended, and report a client that
// disconnected.
void on_wait(Process &process) {
    if (process.has_unreported_disconnect)
        simulation.fail("does not report a client that disconnected before it was accepted");
    for (const uint16_t i : simulation.network.open_links)
        for (const End &end : simulation.network.links[i]->ends)
            if (end.owner == &process && end.id && end.ended)
                simulation.fail("waits without deleting a connection that has ended");
}

// The operator passes --new until a log exists, and again only after a server has lost its log.
Arguments arguments_of(const Process &process) {
    const Configuration &used = *simulation.configuration;
    Arguments arguments;
    if (is_second_server(process))
        return {"--direct-write", "--new", process.machine->name,
                "7472",           "1",     process.machine->name};
    // Once a log exists that they can damage, the second and third client get a wrong list: the
    // second one servers of both logs, the third one too few servers.
    const unsigned wrong = used.foreign && log_exists ? process.index - used.servers : 0;
    if (wrong == 1 || wrong == 2) {
        misconfigured.push_back(&process);
        if (are_blank(used))
            arguments.push_back("--new");
        for (unsigned i = 2; i < (wrong == 1 ? used.servers : 3); i++)
            arguments.insert(arguments.end(), {simulation.machines[i]->name, "7471"});
        return arguments;
    }
    const bool has_log = process.index >= used.log_servers() && !are_blank(used);
    if (process.is_server ? !process.has_listened && !has_log : !log_exists)
        arguments.push_back("--new");
    if (process.is_server)
        arguments.insert(arguments.end(),
                         {"--direct-write", process.machine->name, "7471", "1"});
    if (process.is_server && used.has_file(process.index))
        arguments.push_back(process.machine->name);
    for (unsigned i = 0; i < used.log_servers() && !process.is_server; i++)
        arguments.insert(arguments.end(), {simulation.machines[i]->name, "7471"});
    return arguments;
}

} // namespace

const Oracle replicated_log = {.example = "14-replicated-log",
                               .has_reader = true,
                               .locks_files = true,
                               .resolve_ms = PATIENCE_MS,
                               .arguments = arguments_of,
                               .begin = begin,
                               .on_line = on_line,
                               .on_end = on_end,
                               .check = check,
                               .on_wait = on_wait,
                               .may_lose_memory = may_lose_memory};

// ---- damaged logs

namespace {

// Appends records until the log is full, of maximum size except the last ones.
Image full_log(const Image &good, uint64_t number) {
    Image image = good;
    uint32_t epoch;
    memcpy(&epoch, good.data() + EPOCH_PLACE, sizeof(epoch));
    for (; image.size() < MEMORY_SIZE; number++) {
        size_t room = MEMORY_SIZE - image.size();
        size_t space =
            room <= PAYLOAD_MAX ? room : std::min(PAYLOAD_MAX, room / 2 / WORD * WORD);
        add_record(image, space, number, epoch);
    }
    return image;
}

unsigned damaged_logs;
std::string damage_finding;

void expect(bool good, const std::string &what) {
    damaged_logs++;
    if (damage_finding.empty() && !good)
        damage_finding = what;
}

// Starts the first servers with the image as their log; an empty image is blank memory.
void start_servers(unsigned count, const Image &image, bool make_new) {
    std::vector<Process *> servers;
    for (unsigned i = 0; i < count; i++) {
        servers.push_back(simulation.processes[i].get());
        servers[i]->has_listened = !make_new;
        set_memory(servers[i]->machine->memory, image);
    }
    simulation.run_more(servers, false);
}

// Checks whether a server accepts the image as its log.
void check_server(const Image &image, bool make_new, bool starts, const std::string &what) {
    Process &server = *simulation.processes[0];
    start_servers(1, image, make_new);
    bool listens = server.state == Process::WAITING;
    bool refuses = server.state == Process::OFF && server.status == EXIT_FAILURE &&
                   server.errors.find("log 1 of") != std::string::npos;
    if (listens)
        server.end(Process::KILLED);
    expect(starts ? listens : refuses, what + (starts ? " is refused" : " is served"));
    expect((starts && make_new) ||
               !memcmp(server.machine->memory.visible(), image.data(), image.size()),
           what + " is overwritten");
    expect(make_new || simulation.reader_accepts() == starts, what + ": the reader");
}

// The reader must find each committed record in a majority of the logs.
void check_reader(const Image &good, const Image &shorter) {
    for (unsigned holders = 0; holders <= simulation.configuration->servers; holders++) {
        for (unsigned i = 0; i < simulation.configuration->servers; i++) {
            const Image &image = i < holders ? good : shorter;
            memcpy(simulation.machines[i]->memory.visible(), image.data(), image.size());
        }
        bool accepted = simulation.reader_accepts();
        std::string expected = "only " + std::to_string(holders) + " of ";
        expect(accepted == (holders > simulation.configuration->servers / 2) &&
                   (accepted || simulation.reader.errors.find(expected) != std::string::npos),
               "the reader of " + std::to_string(holders) + " logs that have all");
    }
    for (const Arguments &few : {Arguments{"reader"}, {"reader", "file"}}) {
        simulation.reader.start(few);
        simulation.reader.resume();
        expect(simulation.reader.status == 2 &&
                   simulation.reader.errors.starts_with("usage: reader FILE LOG"),
               "the usage of the reader: " + simulation.reader.first_error());
    }
    simulation.client_lines.push_back("committed 0 12345678");
    expect(!simulation.reader_accepts(), "the reader of another record");
    simulation.client_lines.pop_back();
}

// The header of a running server is damaged: the client must continue with the others.
void check_damaged_server(const Image &good) {
    start_servers(simulation.configuration->servers, good, false);
    simulation.machines[0]->memory.visible()[FIXED_BEGIN]++;
    Process &client = *simulation.processes.back();
    simulation.run_more({&client}, true);
    expect(client.status == EXIT_SUCCESS &&
               std::ranges::count(simulation.client_lines,
                                  "client: server machine-of-server1 is lost: "
                                  "there is no log"),
           "a header that is damaged later: the client reports: " + client.first_error());
    for (unsigned i = 0; i < simulation.configuration->servers; i++)
        simulation.processes[i]->end(Process::KILLED);
}

// All servers have this log: the client must fail with the expected message and change no
// record.
void check_client(const Image &image, const char *wanted, const std::string &what) {
    start_servers(simulation.configuration->servers, image, image.empty());
    Process &client = *simulation.processes.back();
    simulation.run_more({&client}, true);
    expect(client.status == EXIT_FAILURE && client.errors.find(wanted) != std::string::npos,
           what + ": the client reports: " + client.first_error());
    for (unsigned i = 0; i < simulation.configuration->servers; i++) {
        const Process &server = *simulation.processes[i];
        simulation.processes[i]->end(Process::KILLED);
        size_t begin = std::min(FIXED_BEGIN, image.size());
        expect(!memcmp(server.machine->memory.visible() + begin, image.data() + begin,
                       image.size() - begin),
               what + ": a log has changed");
        expect(has_no_log(server) == image.empty(), what + ": the epoch has changed");
    }
}

} // namespace

unsigned damage_logs() {
    Schedule default_schedule;
    if (!simulation.run(default_schedule))
        return 0;
    const char *log = simulation.machines[0]->memory.visible();
    uint32_t tail;
    memcpy(&tail, log, sizeof(tail));
    const Image good(log, tail);
    const uint64_t records = held_records[0][0].checksums.size();

    Image shorter = good;
    set_number(shorter, TAIL_PLACE, LOG_BEGIN + RECORD_HEADER);
    check_reader(good, shorter);
    check_server(good, false, true, "a good log");
    check_server(good, true, false, "a good log with --new");
    check_server(empty_log(1, FOREIGN_IDENTITY), true, false,
                 "the log of a first client that has no record, with --new");
    for (size_t bit = 0; bit < 8 * (IDENTITY_PLACE + WORD); bit++) {
        if (bit / 8 >= FIXED_END + 4 && bit / 8 < IDENTITY_PLACE)
            continue; // no checksum covers these bytes
        Image image = good;
        image[bit / 8] = static_cast<char>(image[bit / 8] ^ 1 << bit % 8);
        check_server(image, false, false, "a header with a wrong bit " + std::to_string(bit));
    }
    for (size_t end = 0; end < good.size(); end++) {
        Image image = good.substr(0, end) + Image(good.size() - end, '\0');
        check_server(image, false, image == good, "a log cut at byte " + std::to_string(end));
    }
    for (size_t place : {TAIL_PLACE, EPOCH_PLACE, IDENTITY_PLACE}) {
        Image image = good;
        image.replace(place, WORD, WORD, '\xff');
        check_server(image, false, false, "a number of 2^64 - 1");
        check_server(image, true, true, "a damaged log with --new");
    }
    check_damaged_server(good);
    Image last_epoch = good;
    set_number(last_epoch, EPOCH_PLACE, UINT32_MAX);
    check_client(last_epoch, "no epoch is left", "the last epoch");
    check_client(full_log(good, records), "the log is full", "a full log");
    check_client({}, "no valid log", "all servers have lost their logs");
    simulation.finding = damage_finding;
    return damaged_logs;
}
