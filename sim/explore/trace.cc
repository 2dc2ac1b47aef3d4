// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// trace.cc -- the steps of a schedule, and the requests that cause their effects

#include "trace.hh"

#include "../model/resp.hh"
#include "finding.hh"

#include <algorithm>
#include <cstdio>

namespace {

constexpr size_t MAX_RANGES = 6; // of lost words, in lines of their own

std::string host_name(unsigned host) {
    return "host" + std::to_string(host);
}

std::string base_name(const std::string &path) {
    return path.substr(path.rfind('/') + 1);
}

std::string bytes_at(uint64_t address, uint64_t length,
                     const std::optional<sim::FileRange> &file) {
    char text[64];
    snprintf(text, sizeof(text), "%llu byte%s at 0x%llx",
             static_cast<unsigned long long>(length), length == 1 ? "" : "s",
             static_cast<unsigned long long>(address));
    return text + (file
                       ? " (" + base_name(file->path) + "+" + std::to_string(file->offset) + ")"
                       : "");
}

bool is_send(uint32_t opcode) {
    return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM ||
           opcode == IBV_WR_SEND_WITH_INV;
}

bool has_target_range(uint32_t opcode) {
    return !is_send(opcode) && opcode != IBV_WR_RDMA_READ && opcode != SIM_WR_FLUSH;
}

// Returns an empty text without data in the memory of the program.
std::string sent_digest(sim::Fabric &fabric, const sim::Qp &qp, const sim::Send &send) {
    const std::vector<std::byte> data = sim::data_in_program(fabric, qp, send);
    return data.empty() ? ""
                        : digest_of({reinterpret_cast<const char *>(data.data()), data.size()});
}

} // namespace

void Trace::add(Step step) {
    if (!is_on_ || step.what.empty())
        return;
    step.time = fabric_->now() - begin_;
    steps_.push_back(std::move(step));
}

void Trace::move_last_to(size_t position) {
    if (position < steps_.size())
        std::rotate(steps_.begin() + static_cast<ptrdiff_t>(position), steps_.end() - 1,
                    steps_.end());
}

std::string Trace::Request::text() const {
    return describe(wr) + " of " + host_name(host) + " QP " + std::to_string(qp);
}

void Trace::arrived(const sim::Cm::Message &message) {
    constexpr const char *NAMES[] = {"ARP", "REQ", "REP", "RTU", "REJ", "DREQ", "DREP"};
    if (!is_on_ || message.kind == sim::Cm::Message::ARP || message.destination == nullptr)
        return;
    const unsigned from = message.source->host->number, to = message.destination->host->number;
    add({Step::MESSAGE, to, host_name(to),
         std::string("CM message ") + NAMES[message.kind] + " arrives from " + host_name(from),
         from});
}

void Trace::packet(unsigned from, unsigned to, const std::string &what) {
    if (is_on_)
        add({Step::MESSAGE, to, host_name(to), what + " from " + host_name(from), from});
}

void Trace::executing(const sim::Qp &qp, const sim::Qp &target, const sim::Send &send) {
    if (!is_on_)
        return;
    requests_.push_back({qp.handle, qp.number, qp.session->host->number,
                         target.session->host->number, send.wr, send.length});
    const Request &request = requests_.back();
    const auto found = posted_.find({qp.handle, send.posted});
    if (const std::string now = sent_digest(*fabric_, qp, send);
        found != posted_.end() && !now.empty() && now != found->second)
        add({Step::MESSAGE, request.host, host_name(request.host),
             "has changed the data of " + describe(request.wr) + ", QP " +
                 std::to_string(request.qp)});
    if (send.wr.opcode == IBV_WR_RDMA_READ || send.wr.opcode == SIM_WR_FLUSH ||
        send.length == 0)
        add({Step::MESSAGE, request.target, host_name(request.target),
             "executes " + request.text(), request.host});
}

void Trace::posted(const sim::Qp &qp) {
    if (!is_on_)
        return;
    for (const sim::Send &send : qp.sends)
        if (const std::pair key(qp.handle, send.posted); !posted_.contains(key))
            posted_[key] = sent_digest(*fabric_, qp, send);
}

void Trace::replaced(uint64_t before, uint64_t after) {
    if (is_on_ && !requests_.empty())
        requests_.back().values =
            describe(before) + (before == after ? " stays" : " becomes " + describe(after));
}

void Trace::landed(const sim::Qp &qp, const sim::Send &send) {
    if (!is_on_ || send.status != IBV_WC_SUCCESS)
        return;
    const unsigned host = qp.session->host->number;
    const auto found =
        std::ranges::find_if(requests_.rbegin(), requests_.rend(), [&](const Request &each) {
            return each.handle == qp.handle && each.wr.wr_id == send.wr.wr_id;
        });
    std::string where;
    for (const ibv_sge &sge : send.sges)
        where += (where.empty() ? "" : " + ") + bytes_at(sge.addr, sge.length, {});
    if (!where.empty())
        add({Step::VISIBLE, host, host_name(host),
             "visible: " + where + ", the result of " + describe(send.wr),
             found == requests_.rend() ? 0 : found->target});
}

// The executed request that writes there now: a write whose words become visible late precedes
// the current request.
const Trace::Request *Trace::request_of(uint32_t writer, uint64_t address) const {
    for (auto each = requests_.rbegin(); each != requests_.rend(); each++) {
        const uint64_t begin = each->wr.remote_addr;
        if (each->handle == writer && (is_send(each->wr.opcode) ||
                                       (has_target_range(each->wr.opcode) && address >= begin &&
                                        address < begin + std::max<uint64_t>(each->length, 8))))
            return &*each;
    }
    return nullptr;
}

void Trace::written(unsigned host, int pid, uint64_t address, uint64_t length, uint32_t writer,
                    const std::optional<sim::FileRange> &file) {
    const Request *const request = is_on_ ? request_of(writer, address) : nullptr;
    if (request == nullptr)
        return;
    const bool is_late = request != &requests_.back();
    add({Step::VISIBLE, host, host_name(host),
         std::string(is_late ? "visible late: " : "visible: ") +
             bytes_at(address, length, file) + ", " + request->text() +
             (request->values.empty() ? "" : ": " + request->values),
         request->host});
    if (file)
        written_.push_back({host, pid, address, length, file, *request});
}

void Trace::persisted(unsigned host, int pid, uint64_t address, uint64_t length,
                      uint32_t writer) {
    if (!is_on_)
        return;
    const std::string cause = requests_.empty() || requests_.back().handle != writer
                                  ? ""
                                  : ", by " + describe(requests_.back().wr);
    std::vector<Written> rest;
    for (Written &each : written_) {
        const uint64_t begin = std::max(address, each.address),
                       end = std::min(address + length, each.address + each.length);
        if (each.pid != pid || begin >= end || (writer != 0 && each.request.handle != writer)) {
            rest.push_back(std::move(each));
            continue;
        }
        const auto part = [&](uint64_t from, uint64_t until) {
            Written piece = each;
            piece.address = from;
            piece.length = until - from;
            piece.file->offset += from - each.address;
            return piece;
        };
        const Written now = part(begin, end);
        add({Step::PERSISTENT, host, host_name(host),
             "persistent: " + bytes_at(begin, end - begin, now.file) + ", " +
                 each.request.text() + cause});
        if (each.address < begin)
            rest.push_back(part(each.address, begin));
        if (end < each.address + each.length)
            rest.push_back(part(end, each.address + each.length));
    }
    written_ = std::move(rest);
}

void Trace::lost(unsigned host, uint64_t words, const std::vector<sim::FileRange> &ranges) {
    if (!is_on_)
        return;
    add({Step::LOST, host, host_name(host),
         "has lost " + std::to_string(words) + " words that were not persistent"});
    for (size_t i = 0; i < ranges.size() && i < MAX_RANGES; i++) {
        const sim::FileRange &range = ranges[i];
        const auto writer =
            std::ranges::find_if(written_.rbegin(), written_.rend(), [&](const Written &each) {
                return each.host == host && each.file->path == range.path &&
                       each.file->offset < range.offset + range.length &&
                       range.offset < each.file->offset + each.length;
            });
        add({Step::LOST, host, host_name(host),
             "lost: " + std::to_string(range.length) + " bytes of " + base_name(range.path) +
                 "+" + std::to_string(range.offset) +
                 (writer == written_.rend() ? "" : ", " + writer->request.text())});
    }
    if (ranges.size() > MAX_RANGES)
        add({Step::LOST, host, host_name(host),
             "lost: " + std::to_string(ranges.size() - MAX_RANGES) + " more ranges"});
    std::erase_if(written_, [&](const Written &each) { return each.host == host; });
}

// A datagram, whose sender gets no error.
void Trace::lost(const sim::Qp &qp, const sim::Send &send, const sim::Device *at,
                 const char *why) {
    if (!is_on_)
        return;
    const unsigned from = qp.context->device->host->number,
                   to = at == nullptr ? from : at->host->number;
    add({Step::MESSAGE, to, host_name(to),
         "lost: " + describe(send.wr) + " of " + host_name(from) + " QP " +
             std::to_string(qp.number) + ": " + why,
         from});
}

std::vector<Step> without_set_up(const std::vector<Step> &steps) {
    struct SetUp {
        unsigned host;
        size_t at, calls; // at: the place of the first one
    };
    std::map<std::string, SetUp> programs; // by their names, until their set-up has ended
    std::vector<Step> all;
    for (const Step &each : steps) {
        const std::string name =
            each.who.substr(0, std::min(each.who.find(" thread "), each.who.find(" process ")));
        if (each.kind == Step::PROCESS && each.what == "starts")
            programs[name] = {each.host, 0, 0};
        if (each.kind == Step::MESSAGE)
            std::erase_if(programs, [&](auto &one) { return one.second.host == each.host; });
        if (each.is_post)
            programs.erase(name);
        const auto found = programs.find(name);
        const bool is_folded =
            each.kind == Step::CALL && !each.has_failed && found != programs.end();
        if (!is_folded || found->second.calls++ == 0) {
            if (is_folded)
                found->second.at = all.size();
            all.push_back(each);
            continue;
        }
        Step &step = all[found->second.at];
        step = {.kind = Step::CALL,
                .host = each.host,
                .who = name,
                .what = "set-up: " + std::to_string(found->second.calls) + " calls",
                .time = step.time};
    }
    return all;
}

std::vector<Step> folded(const std::vector<Step> &steps) {
    std::vector<Step> all;
    for (const Step &each : steps) {
        Step *const last = all.empty() ? nullptr : &all.back();
        const bool is_alike =
            last != nullptr && last->who == each.who && last->place == each.place &&
            last->kind == each.kind &&
            (each.series.empty() ? last->what == each.what : last->series == each.series);
        if (!is_alike || each.is_choice()) {
            all.push_back(each);
            continue;
        }
        last->count++;
        last->last = each.last;
    }
    return all;
}

std::vector<Step> without_middle(const std::vector<Step> &steps) {
    std::vector<Step> all;
    size_t at = 0, count = 0; // at: the place of the number
    for (size_t i = 0; i < steps.size(); i++) {
        const bool is_in_middle = i >= FIRST_STEPS && i + LAST_STEPS < steps.size();
        if (!is_in_middle || steps[i].is_choice()) {
            all.push_back(steps[i]);
            continue;
        }
        if (count++ == 0) {
            at = all.size();
            all.push_back({.kind = Step::CALL,
                           .host = steps[i].host,
                           .who = "",
                           .what = "",
                           .time = steps[i].time});
        }
    }
    if (count > 0)
        all[at].what = "... " + std::to_string(count) + " more steps, which --verbose shows";
    return all;
}

std::string time_of(const Step &step) {
    char time[64];
    snprintf(time, sizeof(time), "%.3f ms", static_cast<double>(step.time) / 1e6);
    return time;
}

std::string line_of(const Step &step, const SourceLines &lines) {
    char time[64];
    snprintf(time, sizeof(time), "%15s ", time_of(step).c_str());
    const std::string place = lines.at(step.place);
    return time + std::string(step.is_choice() ? "- " : "  ") + step.who +
           (step.who.empty() ? "" : " ") + describe(step) +
           (place.empty() ? "" : "  [" + place + "]");
}
