// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// ledger.cc -- the file that lists the flushed records of a client

#include "ledger.hh"

#include "failure.hh"
#include "pattern.hh"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <fstream>
#include <unistd.h>

static constexpr int VERSION = 1;
static constexpr size_t LINE_SIZE_MAX = 256; // no line is as long

uint64_t LedgerHead::offset_of(uint64_t connection, uint64_t number) const {
    return (connection * plan.ring + number % plan.ring) * plan.stride();
}

void LedgerHead::fill(std::span<char> record, uint64_t connection, uint64_t number) const {
    const uint64_t ids[] = {run, connection, number, offset_of(connection, number)};
    std::memcpy(record.data(), ids, sizeof(ids));
    pattern_fill(record.subspan(sizeof(ids)), run + connection, number);
}

// The line with its checksum, the CRC-32 of Ethernet, gzip and zlib.
static std::string with_checksum(const std::string &line) {
    uint32_t crc = UINT32_MAX;
    for (const char c : line) {
        crc ^= static_cast<unsigned char>(c);
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0xedb88320) : 0);
    }
    return fmt::format("{} {:08x}\n", line, ~crc);
}

static std::string text_of(const LedgerHead &head) {
    return with_checksum(fmt::format(
        "rpma-perf ledger {}: run {:016x}, {}, size {}, ring {}, connections {}", VERSION,
        head.run, head.plan.op().name, head.plan.size, head.plan.ring, head.plan.connections));
}

static std::string text_of(const LedgerLine &line) {
    return with_checksum(fmt::format("{} {} {}", line.connection, line.done, line.bound));
}

// ---- writing -------------------------------------------------------------------------------

Ledger::Ledger(std::string where, const LedgerHead &head)
    : path(std::move(where)), text(text_of(head)),
      fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {
    if (fd < 0)
        fail("cannot create the ledger {}: {}", path, strerror(errno));
    try {
        sync();
    } catch (...) {
        close(fd);
        unlink(path.c_str()); // it has no complete first line
        throw;
    }
}

Ledger::~Ledger() {
    close(fd);
}

void Ledger::add(const LedgerLine &line) {
    text += text_of(line);
}

// WAKE_SIGNAL may interrupt both calls if the file system is remote.
void Ledger::sync() {
    for (size_t written = 0; written < text.size();) {
        const ssize_t part = write(fd, &text[written], text.size() - written);
        if (part < 0 && errno != EINTR)
            fail("cannot write the ledger {}: {}", path, strerror(errno));
        written += static_cast<size_t>(std::max<ssize_t>(part, 0));
    }
    text.clear();
    while (fdatasync(fd) != 0)
        if (errno != EINTR)
            fail("cannot sync the ledger {}: {}", path, strerror(errno));
}

// ---- reading -------------------------------------------------------------------------------

// Accepts only the canonical spelling: formats the parsed values and compares the texts.
static bool parse_head(const std::string &text, LedgerHead &head) {
    Plan &plan = head.plan;
    char name[24];
    if (sscanf(text.c_str(),
               "rpma-perf ledger %*u: run %16lx, %23[^,], size %lu, ring %lu, connections %lu",
               &head.run, name, &plan.size, &plan.ring, &plan.connections) != 5)
        return false;
    plan.operation = find_operation(name);
    return plan.operation < OPERATION_COUNT && text_of(head) == text &&
           plan.size >= RECORD_SIZE_MIN && plan.size <= OPERATION_SIZE_MAX && plan.ring &&
           plan.ring <= RING_MAX && plan.connections && plan.connections <= CONNECTIONS_MAX &&
           plan.conflict().empty();
}

// Rejects a line that decreases the count of a connection.
static bool parse_line(const std::string &text, LedgerContent &content) {
    LedgerLine line;
    if (sscanf(text.c_str(), "%lu %lu %lu", &line.connection, &line.done, &line.bound) != 3 ||
        text_of(line) != text || line.connection >= content.head.plan.connections ||
        line.bound < line.done || line.done < content.lines[line.connection].done)
        return false;
    content.lines[line.connection] = line;
    return true;
}

LedgerContent read_ledger(const std::string &path) {
    LedgerContent content;
    std::ifstream file(path);
    std::array<char, LINE_SIZE_MAX> line;
    int version = 0;
    if (!file)
        fail("{}: {}", path, strerror(errno));
    for (unsigned number = 1; file.getline(line.data(), line.size()) || file.gcount() > 0;
         number++) {
        const bool is_whole = !file.eof() && !file.fail();
        std::string text(line.data(), static_cast<size_t>(file.gcount()) - is_whole);
        text += is_whole ? "\n" : "";
        if (number == 1 && sscanf(text.c_str(), "rpma-perf ledger %d:", &version) != 1)
            break;
        if (number == 1 && version != VERSION)
            fail("{} is a ledger of version {}, this rpma-perf reads version {}", path, version,
                 VERSION);
        content.is_torn = number > 1 && file.eof();
        if (!content.is_torn &&
            !(number == 1 ? parse_head(text, content.head) : parse_line(text, content)))
            fail("line {} of the ledger {} is damaged", number, path);
    }
    if (file.bad())
        fail("cannot read {}", path);
    if (!version)
        fail("{} is not a ledger of rpma-perf", path);
    return content;
}
