// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// pmem_files.cc -- the files of --pmem: their paths, and where processes map them

#include "mappings.hh"
#include "pmem.hh"

#include <algorithm>
#include <cassert>
#include <filesystem>
#include <sys/stat.h>

namespace sim {

void PmemFiles::keep_history() {
    has_history_ = true;
    for (const auto &[host, file] : files_)
        file->keep_history();
}

void PmemFiles::add(unsigned host, std::unique_ptr<PmemFile> file) {
    const std::filesystem::path path = std::filesystem::absolute(file->path());
    paths_.emplace(host, std::filesystem::canonical(path.parent_path()) / path.filename());
    files_.emplace(host, std::move(file));
}

std::string PmemFiles::ids(unsigned host) const {
    std::string all;
    for (auto [each, end] = paths_.equal_range(host); each != end; each++)
        all += each->second + "//";
    return all;
}

// Opens a file that a program has created, or returns NULL and the error.
std::unique_ptr<PmemFile> PmemFiles::open_later(const std::string &path,
                                                std::string &error) const {
    std::unique_ptr<PmemFile> file = PmemFile::open(path, error, PmemFile::NOT_PERSISTENT);
    if (file && has_history_)
        file->keep_history();
    return file;
}

// Makes parts of other files persistent, which open() can find.
void PmemFiles::persist_candidates(int pid, uint64_t address, size_t length) {
    for_each_mapping(std::to_string(pid), [&](const Line &line) {
        const uint64_t begin = std::max(address, line.begin),
                       end = std::min(address + length, line.end);
        const auto is_line = [&](const auto &file) {
            return file->is_mapped_as(line.device, line.inode);
        };
        if (!line.is_shared || begin >= end ||
            std::ranges::any_of(files_, [&](const auto &each) { return is_line(each.second); }))
            return;
        auto found = std::ranges::find_if(candidates_, is_line);
        if (found == candidates_.end()) {
            std::string error;
            std::unique_ptr<PmemFile> file = open_later(line.path, error);
            if (!file || !is_line(file))
                return;
            candidates_.push_back(std::move(file));
            found = std::prev(candidates_.end());
        }
        (*found)->persist(begin - line.begin + line.offset, end - begin, 0);
    });
}

// A program may unlink a file and create it again, or rename another one over it. The former
// file is known as long as it has a name, or as long as a region is in it.
void PmemFiles::find_replaced() {
    for (const auto &[host, path] : paths_) {
        struct stat status;
        if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode) ||
            std::ranges::any_of(files_,
                                [&](const auto &each) { return each.second->is_same(status); }))
            continue;
        std::string error;
        std::unique_ptr<PmemFile> file;
        const auto candidate = std::ranges::find_if(
            candidates_, [&](const auto &each) { return each->is_same(status); });
        if (candidate != candidates_.end()) {
            file = std::move(*candidate);
            file->set_path(path);
        } else {
            file = open_later(path, error);
        }
        if (!file)
            throw Failure("--pmem " + path + ", which a program has replaced: " + error);
        std::erase_if(candidates_,
                      [](const auto &each) { return !each || each->is_deleted(); });
        std::erase_if(files_, [&](const auto &each) {
            return each.second->is_deleted() && !has_region(*each.second);
        });
        files_.emplace(host, std::move(file));
    }
}

bool PmemFiles::has_region(const PmemFile &file) const {
    return std::ranges::any_of(processes_, [&](const auto &process) {
        return std::ranges::any_of(process.second.mappings, [&](const Mapping &mapping) {
            return mapping.file == &file;
        });
    });
}

uint64_t PmemFiles::lose_power(unsigned host, std::mt19937_64 *generator,
                               std::vector<FileRange> *ranges) {
    uint64_t lost = 0;
    find_replaced();
    for (auto [each, end] = files_.equal_range(host); each != end; each++)
        lost += each->second->lose_power(generator, ranges);
    return lost;
}

PmemFiles::Process &PmemFiles::refreshed(int pid) {
    find_replaced();
    Process &process = processes_[pid];
    process.mappings.clear();
    for_each_mapping(std::to_string(pid), [&](const Line &line) {
        for (const auto &[host, file] : files_)
            if (line.is_shared && file->is_mapped_as(line.device, line.inode))
                process.mappings.push_back({line.begin, line.end, line.offset, file.get()});
    });
    return process;
}

void PmemFiles::registered(int pid, const Region &region) {
    if (!files_.empty())
        refreshed(pid).regions[region.key] = {region.address, region.address + region.length};
}

// A range that stays known would keep mappings that the process has replaced.
void PmemFiles::deregistered(int pid, const Region &region) {
    if (files_.empty())
        return;
    const auto found = processes_.find(pid);
    assert(found != processes_.end() && found->second.regions.contains(region.key));
    found->second.regions.erase(region.key);
    if (found->second.regions.empty())
        processes_.erase(found);
}

// Those of a registered range are known.
const std::vector<PmemFiles::Mapping> &PmemFiles::mappings_of(int pid, uint64_t address,
                                                              size_t length) {
    Process &process = processes_[pid];
    const bool is_known = std::ranges::any_of(process.regions, [&](const auto &region) {
        return region.second.first <= address && address + length <= region.second.second;
    });
    return is_known ? process.mappings : refreshed(pid).mappings;
}

// Calls use(file, offset, length) for each part of the range that is in a file.
template <class Use>
void PmemFiles::for_each_part(int pid, uint64_t address, size_t length, Use use) {
    if (files_.empty())
        return;
    for (const Mapping &each : mappings_of(pid, address, length)) {
        const uint64_t begin = std::max(address, each.begin),
                       end = std::min(address + length, each.end);
        if (begin < end)
            use(*each.file, begin - each.begin + each.offset, end - begin);
    }
    if (processes_[pid].regions.empty())
        processes_.erase(pid);
}

void PmemFiles::written(int pid, uint64_t address, size_t length, uint32_t writer) {
    for_each_part(pid, address, length, [&](PmemFile &file, uint64_t offset, uint64_t size) {
        file.record(offset, size, writer);
    });
}

void PmemFiles::persist(int pid, uint64_t address, size_t length, uint32_t writer) {
    if (!files_.empty() && writer == 0) // a program itself
        persist_candidates(pid, address, length);
    for_each_part(pid, address, length, [&](PmemFile &file, uint64_t offset, uint64_t size) {
        file.persist(offset, size, writer);
    });
}

std::optional<FileRange> PmemFiles::file_range(int pid, uint64_t address, size_t length) {
    std::optional<FileRange> found;
    for_each_part(pid, address, length, [&](PmemFile &file, uint64_t offset, uint64_t size) {
        if (!found)
            found = FileRange{file.path(), offset, size};
    });
    return found;
}

bool PmemFiles::is_persistent(int pid, uint64_t address, size_t length) {
    if (files_.empty())
        return false;
    uint64_t covered = 0;
    for (const Mapping &each : mappings_of(pid, address, length)) {
        const uint64_t begin = std::max(address, each.begin),
                       end = std::min(address + length, each.end);
        covered += begin < end ? end - begin : 0;
    }
    return length > 0 && covered == length;
}

} // namespace sim
