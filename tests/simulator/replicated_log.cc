// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// replicated_log.cc -- the invariants of example 14: no committed record is lost or changed,
// and no power failure leaves a damaged log. The walk over a log follows the description of its
// format in log.h, so that a mistake in log.c shows.

#include "world.hh"

#include <algorithm>
#include <array>
#include <cstring>

namespace {

// ---- the format of the log

constexpr size_t TAIL_PLACE = 0, EPOCH_PLACE = 8, FIXED_BEGIN = 16, FIXED_END = 32;
constexpr size_t LOG_BEGIN = 64, PAYLOAD_MAX = 4096, RECORD_HEADER = 24;
// The part of the header that never changes: signature, version, size.
constexpr char FIXED[] = "RPMALOG\0\x03\0\0\0\0\0\x80";

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

// The number in a word of the header; UINT64_MAX if the word holds none.
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

// Reads the record at begin; returns false if it is not whole.
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

// ---- the present state

struct Committed {
    uint64_t number;
    uint32_t checksum;
};
std::vector<Committed> committed;
bool founded; // the log was begun, as far as the operator knows

// The records of a server in both images: the visible one, and the one that every power failure
// leaves.
struct Holding {
    uint64_t changes;
    std::vector<uint32_t> checksums;
};
std::vector<std::array<Holding, 2>> holdings;

void walk(const Process &server, bool persistent, std::vector<uint32_t> &checksums) {
    const Memory &memory = server.machine->memory;
    const char *image = memory.image(persistent), *name = server.name.c_str();
    checksums.clear();
    if (!is_log(image) || (persistent && !memory.is_certain(FIXED_BEGIN, FIXED_END + 4)))
        return;
    size_t first = MEMORY_SIZE, last = 0, certain = 0;
    memory.each_outcome(persistent, TAIL_PLACE, [&](uint64_t word) {
        size_t tail = number_of(TAIL_PLACE, word);
        if (tail < LOG_BEGIN || tail > MEMORY_SIZE || tail % WORD)
            world.found("%s: the tail is damaged", name);
        first = std::min(first, tail);
        last = std::max(last, tail);
    });
    memory.each_outcome(persistent, EPOCH_PLACE, [&](uint64_t word) {
        if (number_of(EPOCH_PLACE, word) > UINT32_MAX)
            world.found("%s: the epoch is damaged", name);
    });
    if (!world.finding.empty())
        return;
    Record record{LOG_BEGIN, 0, 0};
    for (size_t begin = LOG_BEGIN; begin < last; begin = record.end) {
        uint64_t epoch = record.epoch;
        bool whole = read_record(image, begin, checksums.size(), record) &&
                     record.epoch >= epoch && record.end <= last;
        if (!whole || (persistent && !memory.is_certain(begin, record.end)))
            return world.found("%s: record %zu is before the tail, but %s", name,
                               checksums.size(),
                               persistent ? "a power failure may damage it" : "damaged");
        checksums.push_back(record.checksum);
        if (record.end <= first)
            certain = checksums.size();
    }
    checksums.resize(certain);
}

// Whether a server has no valid log, or may have none after a power failure.
bool is_forgetful(const Process &server) {
    const Memory &memory = server.machine->memory;
    bool forgetful = !is_log(memory.image(false));
    memory.each_outcome(true, EPOCH_PLACE, [&](uint64_t word) {
        uint64_t epoch = number_of(EPOCH_PLACE, word);
        forgetful |= epoch == 0 || epoch > UINT32_MAX;
    });
    return forgetful;
}

unsigned count_forgetful() {
    unsigned count = 0;
    for (unsigned i = 0; i < world.configuration->servers; i++)
        count += is_forgetful(*world.processes[i]);
    return count;
}

// Only a minority may have forgotten at a time; the operator cannot know more than that.
bool may_forget(const Process &server) {
    return !is_forgetful(server) && count_forgetful() < (world.configuration->servers - 1) / 2;
}

void check() {
    unsigned servers = world.configuration->servers;
    unsigned forgetful = world.configuration->forgets ? count_forgetful() : 0;
    for (unsigned i = 0; i < servers; i++) {
        Process &server = *world.processes[i];
        for (int persistent = 0; persistent < 2; persistent++) {
            Holding &holding = holdings[i][static_cast<size_t>(persistent)];
            if (holding.changes == server.machine->memory.changes())
                continue;
            server.machine->memory.find_own_stores();
            walk(server, persistent, holding.checksums);
            holding.changes = server.machine->memory.changes();
        }
    }
    for (const Committed &record : committed)
        for (size_t persistent = 0; persistent < 2 && world.finding.empty(); persistent++) {
            unsigned holders = 0;
            for (const auto &holding : holdings) {
                const auto &checksums = holding[persistent].checksums;
                holders += record.number < checksums.size() &&
                           checksums[record.number] == record.checksum;
            }
            if (holders + forgetful <= servers / 2)
                world.found("record %zu was committed, but only %u of %u servers %s",
                            static_cast<size_t>(record.number), holders, servers,
                            persistent ? "keep it whatever the power does" : "have it");
        }
}

void begin() {
    committed.clear();
    founded = false;
    holdings.assign(world.configuration->servers, {});
}

void said(Process &client, const char *line) {
    unsigned long long number;
    unsigned checksum;
    if (sscanf(line, "committed %llu %x", &number, &checksum) != 2)
        return;
    client.committed++;
    committed.push_back({number, checksum});
    founded = true;
    check();
}

// A client commits each of its lines, or reports why not.
void ended(const Process &process) {
    if (process.is_server && (process.status || !process.told_to_stop))
        world.found("ends with status %d: %s", process.status, process.first_error().c_str());
    if (!process.is_server && !process.status && process.committed < process.lines_read)
        world.found("ends well with %u lines, but committed %u records", process.lines_read,
                    process.committed);
    founded |= process.errors.find("start without --new") != std::string::npos;
    if (process.status && process.errors.empty())
        world.found("ends with status %d and does not say why", process.status);
}

// The operator makes and begins a log once, and again only after a failure.
Arguments server_arguments(const Process &server) {
    Arguments arguments{"--direct-write", server.machine->name, "7471", "1",
                        server.machine->name};
    if (!server.was_ready)
        arguments.insert(arguments.begin(), "--new");
    return arguments;
}

Arguments client_arguments(const Process &) {
    Arguments arguments;
    if (!founded)
        arguments.push_back("--new");
    for (auto &process : world.processes)
        if (process->is_server)
            arguments.insert(arguments.end(), {process->machine->name, "7471"});
    return arguments;
}

} // namespace

const Example replicated_log = {.name = "14-replicated-log",
                                .has_reader = true,
                                .server_arguments = server_arguments,
                                .client_arguments = client_arguments,
                                .begin = begin,
                                .said = said,
                                .ended = ended,
                                .check = check,
                                .may_forget = may_forget};

// ---- damaged logs

namespace {

using Image = std::string;

Image image_of(const Process &server, size_t size) {
    return {server.machine->memory.image(false), size};
}

void set_image(Process &server, const Image &image) {
    memcpy(server.machine->memory.visible(), image.data(), image.size());
    server.machine->memory.persist(0, image.size());
}

void set_number(Image &image, size_t place, uint64_t number) {
    const uint64_t sealed[] = {place, number};
    uint64_t word =
        uint64_t{crc32c(reinterpret_cast<const char *>(sealed), sizeof(sealed))} << 32 | number;
    memcpy(image.data() + place, &word, sizeof(word));
}

// Appends records until the log is full, all but the last ones as large as they may be.
Image full_log(const Image &good, uint64_t number) {
    Image image = good;
    uint64_t epoch;
    memcpy(&epoch, good.data() + EPOCH_PLACE, sizeof(epoch));
    epoch &= UINT32_MAX;
    for (; image.size() < MEMORY_SIZE; number++) {
        size_t room = MEMORY_SIZE - image.size();
        size_t space =
            room <= PAYLOAD_MAX ? room : std::min(PAYLOAD_MAX, room / 2 / WORD * WORD);
        Image record(space, 'x');
        auto size = static_cast<uint32_t>(space - RECORD_HEADER);
        memcpy(record.data() + 4, &size, 4);
        memcpy(record.data() + 8, &number, 8);
        memcpy(record.data() + 16, &epoch, 8);
        uint32_t checksum = crc32c(record.data() + 4, space - 4);
        memcpy(record.data(), &checksum, 4);
        image += record;
    }
    set_number(image, TAIL_PLACE, image.size());
    return image;
}

// What the first server does with the image as its log.
struct Damage {
    unsigned count = 0;
    std::string finding;

    void expect(bool good, const std::string &what) {
        count++;
        if (finding.empty() && !good)
            finding = what;
    }

    void look_at(const Image &image, bool make_new, bool starts, const std::string &what) {
        Process &server = *world.processes[0];
        set_image(server, image);
        server.was_ready = !make_new;
        world.start_more({&server}, false);
        bool listens = server.state == Process::WAITING;
        bool refuses = server.state == Process::OFF && server.status == EXIT_FAILURE &&
                       server.errors.find("log 1 of") != std::string::npos;
        if (listens)
            server.end(Process::KILLED);
        bool unchanged = image_of(server, image.size()) == image;
        expect(starts ? listens : refuses, what + (starts ? " is refused" : " is served"));
        expect(unchanged || (starts && make_new), what + " is overwritten");
    }

    // All servers have this log: the client must end with the wanted line and change no record.
    void look_at_client(const Image &image, bool forgotten, const char *wanted,
                        const std::string &what) {
        std::vector<Process *> servers;
        for (unsigned i = 0; i < world.configuration->servers; i++) {
            servers.push_back(world.processes[i].get());
            servers[i]->was_ready = !forgotten;
            if (forgotten)
                servers[i]->machine->memory.reset();
            else
                set_image(*servers[i], image);
        }
        world.start_more(servers, false);
        Process &client = *world.processes.back();
        world.start_more({&client}, true);
        expect(client.status == EXIT_FAILURE && client.errors.find(wanted) != std::string::npos,
               what + ": the client says: " + client.first_error());
        for (Process *server : servers) {
            server->end(Process::KILLED);
            size_t begin = forgotten ? 0 : FIXED_BEGIN, size = forgotten ? 0 : image.size();
            expect(!memcmp(server->machine->memory.image(false) + begin, image.data() + begin,
                           size - std::min(size, begin)),
                   what + ": a log has changed");
            expect(!forgotten || is_forgetful(*server), what + ": a log counts");
        }
    }
};

} // namespace

unsigned damage_logs() {
    Schedule usual;
    if (!world.run(usual))
        return 0;
    const Process &server = *world.processes[0];
    uint32_t tail;
    memcpy(&tail, server.machine->memory.image(false), sizeof(tail));
    const Image good = image_of(server, tail);
    Damage damage;

    damage.look_at(good, false, true, "a good log");
    damage.look_at(good, true, false, "a good log with --new");
    for (size_t bit = 0; bit < 8 * (FIXED_END + 4); bit++) {
        Image image = good;
        image[bit / 8] = static_cast<char>(image[bit / 8] ^ 1 << bit % 8);
        damage.look_at(image, false, false, "a header with a wrong bit " + std::to_string(bit));
    }
    for (size_t end = 0; end < good.size(); end++) {
        Image image = good.substr(0, end) + Image(good.size() - end, '\0');
        damage.look_at(image, false, image == good, "a log cut at byte " + std::to_string(end));
    }
    for (size_t place : {TAIL_PLACE, EPOCH_PLACE}) {
        Image image = good;
        image.replace(place, WORD, WORD, '\xff');
        damage.look_at(image, false, false, "a number of 2^64 - 1");
        damage.look_at(image, true, true, "a damaged log with --new");
    }
    Image last_epoch = good;
    set_number(last_epoch, EPOCH_PLACE, UINT32_MAX);
    damage.look_at_client(last_epoch, false, "no number is left", "the last epoch");
    damage.look_at_client(full_log(good, holdings[0][0].checksums.size()), false,
                          "the log is full", "a full log");
    damage.look_at_client({}, true, "no log that counts", "all servers have forgotten");
    world.finding = damage.finding;
    return damage.count;
}
