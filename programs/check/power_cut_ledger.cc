// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// power_cut_ledger.cc -- the records of a power cut, and the ledger, which lists the flushed
// ones

#include "power_cut.hh"

#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <unistd.h>

namespace {

constexpr int VERSION = 1;
constexpr size_t LINE_SIZE_MAX = 256; // no line is as long

// The finalizer of splitmix64: each bit of the input changes half of the output.
uint64_t mix(uint64_t value) {
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

// The line with its checksum, the CRC-32 of Ethernet, gzip and zlib.
std::string with_checksum(const std::string &line) {
    uint32_t crc = UINT32_MAX;
    for (const char each : line) {
        crc ^= static_cast<unsigned char>(each);
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ ((crc & 1) != 0 ? UINT32_C(0xedb88320) : 0);
    }
    return fmt::format("{} {:08x}\n", line, ~crc);
}

std::string text_of(const Rings &rings) {
    return with_checksum(
        fmt::format("rpma-check power cut {}: run {:016x}, streams {}, places {}", VERSION,
                    rings.run, rings.streams, rings.places));
}

std::string text_of(const Progress &line) {
    return with_checksum(fmt::format("{} {} {}", line.stream, line.done, line.bound));
}

} // namespace

// ---- records -----------------------------------------------------------------------------

size_t Rings::offset_of(uint64_t stream, uint64_t number) const {
    return (stream * places + number % places) * RECORD_SIZE;
}

void Rings::write_record(std::span<std::byte, RECORD_SIZE> record, uint64_t stream,
                         uint64_t number) const {
    const uint64_t seed = mix(mix(run ^ mix(stream)) ^ number);
    std::array<uint64_t, RECORD_SIZE / sizeof(uint64_t)> words = {run, stream, number,
                                                                  offset_of(stream, number)};
    for (size_t i = 4; i < words.size(); i++)
        words[i] = mix(seed + i);
    std::memcpy(record.data(), words.data(), RECORD_SIZE);
}

// ---- writing -----------------------------------------------------------------------------

Ledger::Ledger(std::string path, const Rings &rings)
    : path_(std::move(path)), text_(text_of(rings)),
      fd_(open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {
    if (fd_ < 0)
        fail("cannot create {}: {}", path_, std::strerror(errno));
    try {
        sync();
    } catch (...) {
        close(fd_);
        unlink(path_.c_str()); // it has no complete first line
        throw;
    }
}

Ledger::~Ledger() {
    close(fd_);
}

void Ledger::add(const Progress &line) {
    text_ += text_of(line);
}

// A signal may interrupt both calls if the file system is remote.
void Ledger::sync() {
    for (size_t written = 0; written < text_.size();) {
        const ssize_t part = write(fd_, &text_[written], text_.size() - written);
        if (part < 0 && errno != EINTR)
            fail("cannot write {}: {}", path_, std::strerror(errno));
        written += static_cast<size_t>(std::max<ssize_t>(part, 0));
    }
    text_.clear();
    while (fdatasync(fd_) != 0)
        if (errno != EINTR)
            fail("cannot sync {}: {}", path_, std::strerror(errno));
}

// ---- reading -----------------------------------------------------------------------------

// Accepts only the canonical spelling: formats the parsed values and compares the texts.
static bool parse_head(const std::string &text, LedgerContent &content) {
    Rings &rings = content.rings;
    if (std::sscanf(text.c_str(),
                    "rpma-check power cut %*u: run %16" SCNx64 ", streams %" SCNu64
                    ", places %" SCNu64,
                    &rings.run, &rings.streams, &rings.places) != 3 ||
        text_of(rings) != text || rings.streams == 0 || rings.streams > STREAMS_MAX ||
        rings.places < PLACES_MIN || rings.places > SIZE_MAX / STREAMS_MAX / RECORD_SIZE)
        return false;
    for (uint64_t i = 0; i < rings.streams; i++)
        content.last.push_back({i, 0, 0});
    return true;
}

// Rejects a line that decreases the count of a stream.
static bool parse_line(const std::string &text, LedgerContent &content) {
    Progress line;
    if (std::sscanf(text.c_str(), "%" SCNu64 " %" SCNu64 " %" SCNu64, &line.stream, &line.done,
                    &line.bound) != 3 ||
        text_of(line) != text || line.stream >= content.rings.streams ||
        line.bound < line.done || line.done < content.last[line.stream].done)
        return false;
    content.last[line.stream] = line;
    return true;
}

// A client that crashes may leave an incomplete last line.
LedgerContent read_ledger(const std::string &path) {
    LedgerContent content;
    std::ifstream file(path);
    std::array<char, LINE_SIZE_MAX> line;
    int version = 0;
    if (!file)
        fail("{}: {}", path, std::strerror(errno));
    for (unsigned number = 1; file.getline(line.data(), line.size()) || file.gcount() > 0;
         number++) {
        const bool is_whole = !file.eof() && !file.fail();
        std::string text(line.data(), static_cast<size_t>(file.gcount()) - (is_whole ? 1 : 0));
        text += is_whole ? "\n" : "";
        if (number == 1 && std::sscanf(text.c_str(), "rpma-check power cut %d:", &version) != 1)
            break;
        if (number == 1 && version != VERSION)
            fail("{} has version {} of the format, this rpma-check reads version {}", path,
                 version, VERSION);
        content.is_cut = number > 1 && file.eof();
        if (!content.is_cut &&
            !(number == 1 ? parse_head(text, content) : parse_line(text, content)))
            fail("line {} of {} is damaged", number, path);
    }
    if (file.bad())
        fail("cannot read {}", path);
    if (version == 0)
        fail("{} is not a file of rpma-check --power-cut", path);
    return content;
}
