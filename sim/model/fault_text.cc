// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// fault_text.cc -- reads the text of a fault; the lists of --fault help and --faults help.

#include "faults.hh"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace sim {

namespace {

using Argument = FaultArgument;

constexpr FaultEvent EVENTS[] = {
    {"cq-err", IBV_EVENT_CQ_ERR},         {"qp-fatal", IBV_EVENT_QP_FATAL},
    {"qp-req-err", IBV_EVENT_QP_REQ_ERR}, {"qp-access-err", IBV_EVENT_QP_ACCESS_ERR},
    {"path-mig", IBV_EVENT_PATH_MIG},     {"path-mig-err", IBV_EVENT_PATH_MIG_ERR},
    {"srq-err", IBV_EVENT_SRQ_ERR},       {"device-fatal", IBV_EVENT_DEVICE_FATAL},
    {"lid-change", IBV_EVENT_LID_CHANGE}, {"pkey-change", IBV_EVENT_PKEY_CHANGE},
    {"gid-change", IBV_EVENT_GID_CHANGE}, {"sm-change", IBV_EVENT_SM_CHANGE},
};

struct {
    const char *name;
    int number;
} constexpr ERRORS[] = {{"ENOMEM", ENOMEM}, {"EINVAL", EINVAL}, {"ENOSPC", ENOSPC},
                        {"EIO", EIO},       {"EFAULT", EFAULT}, {"EAGAIN", EAGAIN}};

[[noreturn]] void refuse(const std::string &why) {
    throw BadFault{why};
}

bool read_count(std::string_view word, uint64_t &count) {
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), count);
    return error == std::errc() && end == word.data() + word.size() && count > 0 &&
           count <= UINT32_MAX;
}

// Reads the words of a fault from the first one.
class Reader {
  public:
    Reader(Fault &fault, std::string_view text)
        : fault_(fault), words_(split_words(text, " \t")) {}
    void read_when();
    void read_action();

  private:
    bool has_word() const { return at_ < words_.size(); }
    std::string_view word() const { return has_word() ? words_[at_] : ""; }
    void read_call(std::string_view word);
    void read_hosts();
    void read_argument();
    void read_failing_call();
    void read_error();
    void read_end();

    Fault &fault_;
    std::vector<std::string_view> words_;
    size_t at_ = 0;
};

// Reads WHEN, "[at] TIME", "after HOST [TIME]" or "HOST:CALL[:N] [TIME]".
void Reader::read_when() {
    bool needs_time = true;
    if (word() == "at") {
        at_++;
    } else if (word() == "after") {
        at_++;
        fault_.after = read_host(word());
        if (fault_.after == 0)
            refuse("'after' is followed by a host");
        at_++;
        needs_time = false;
    } else if (word().find(':') != std::string_view::npos) {
        read_call(word());
        at_++;
        needs_time = false;
    }
    const uint64_t time = read_duration(word());
    if (time != UINT64_MAX) {
        fault_.time = time;
        at_++;
    } else if (needs_time) {
        refuse("it begins with a time, such as 2s, with 'after' and a host, or with a call, "
               "such as host2:ibv_post_send:3");
    }
}

void Reader::read_call(std::string_view word) {
    const size_t first = word.find(':'),
                 second = std::min(word.find(':', first + 1), word.size());
    const std::string_view name = word.substr(first + 1, second - first - 1);
    fault_.caller = read_host(word.substr(0, first));
    fault_.call = find_call(name);
    if (fault_.caller == 0)
        refuse("there is no host '" + std::string(word.substr(0, first)) + "'");
    if (!fault_.call)
        refuse("there is no call '" + std::string(name) + "'");
    if (second < word.size() && !read_count(word.substr(second + 1), fault_.nth))
        refuse("the number of the call is missing, such as " + std::string(name) + ":3");
}

void Reader::read_hosts() {
    const FaultKind &kind = *fault_.kind;
    while (fault_.hosts.size() < kind.max_hosts && word().starts_with("host")) {
        if (fault_.hosts.emplace_back(read_host(word())) == 0)
            refuse("there is no host '" + std::string(word()) + "'");
        at_++;
    }
    if (fault_.hosts.empty() && kind.min_hosts == 1 && fault_.caller != 0)
        fault_.hosts.push_back(fault_.caller);
    if (fault_.hosts.size() < kind.min_hosts)
        refuse(kind.min_hosts == 2 ? "two hosts are missing, such as host1 host2"
                                   : "a host is missing, such as host1");
    if (fault_.hosts.size() == 2 && fault_.hosts[0] == fault_.hosts[1])
        refuse("the hosts must differ");
}

// A fault at a call fails this call unless another one is named.
void Reader::read_failing_call() {
    fault_.failing = find_call(word());
    if (fault_.failing)
        at_++;
    else if (!word().starts_with("ibv_") && !word().starts_with("rdma_"))
        fault_.failing = fault_.call;
    if (!fault_.failing)
        refuse(has_word() ? "there is no call '" + std::string(word()) + "'"
                          : "a call is missing, such as ibv_reg_mr");
    if (!fault_.failing->creates)
        refuse(std::string(fault_.failing->name) + " creates no object");
}

void Reader::read_argument() {
    fault_.number = 1;
    switch (fault_.kind->argument) {
    case Argument::NONE:
        return;
    case Argument::TIME:
        fault_.number = read_duration(word());
        if (fault_.number == UINT64_MAX || fault_.number == 0)
            refuse("a time is missing, such as 5ms");
        at_++;
        return;
    case Argument::CALL:
        read_failing_call();
        [[fallthrough]];
    case Argument::COUNT:
    case Argument::OPTIONAL_COUNT:
        if (has_word() && word()[0] >= '0' && word()[0] <= '9' &&
            !read_count(words_[at_++], fault_.number))
            refuse("a count is missing, such as 3");
        return;
    case Argument::EVENT:
        for (const auto &each : EVENTS)
            if (word() == each.name) {
                fault_.event = each.type;
                at_++;
                return;
            }
        refuse("there is no event '" + std::string(word()) + "'");
    case Argument::RANDOM:
        fault_.is_random = word() == "random";
        at_ += fault_.is_random;
    }
}

void Reader::read_error() {
    fault_.error = fault_.kind->error;
    if (fault_.error == 0 || !has_word() || word() == "for")
        return;
    const auto found = std::ranges::find(
        ERRORS, word(), [](const auto &each) { return std::string_view(each.name); });
    if (found == std::end(ERRORS))
        refuse("there is no error '" + std::string(word()) + "' of a call");
    fault_.error = found->number;
    at_++;
}

void Reader::read_end() {
    if (word() != "for")
        return;
    if (!fault_.kind->end)
        refuse(std::string(fault_.kind->name) + " does not last for a time");
    at_++;
    fault_.lasts = read_duration(word());
    if (fault_.lasts == UINT64_MAX || fault_.lasts == 0)
        refuse("'for' is followed by a time, such as 1s");
    at_++;
}

void Reader::read_action() {
    if (!has_word())
        refuse("the action is missing");
    fault_.kind = find_fault(word());
    if (!fault_.kind)
        refuse("there is no action '" + std::string(word()) + "'");
    at_++;
    read_hosts();
    read_argument();
    read_error();
    read_end();
    if (has_word())
        refuse("unexpected '" + std::string(word()) + "'");
}

void append(std::string &list, std::string line, size_t width, const char *text) {
    line.resize(std::max(width, line.size()), ' ');
    list += line + " " + text + "\n";
}

} // namespace

std::span<const FaultEvent> fault_events() {
    return EVENTS;
}

std::vector<std::string_view> split_words(std::string_view text, std::string_view dividers) {
    std::vector<std::string_view> words;
    while (true) {
        const size_t begin = text.find_first_not_of(dividers);
        if (begin == text.npos)
            return words;
        const size_t end = std::min(text.find_first_of(dividers, begin), text.size());
        words.push_back(text.substr(begin, end - begin));
        text.remove_prefix(end);
    }
}

uint64_t read_duration(std::string_view text) {
    static const struct {
        const char *name;
        double nanoseconds;
    } UNITS[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || !(value >= 0 && value < 1e9))
        return UINT64_MAX;
    const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
    for (const auto &each : UNITS)
        if (unit == each.name)
            return static_cast<uint64_t>(value * each.nanoseconds);
    return UINT64_MAX;
}

unsigned read_host(std::string_view text) {
    if (text.starts_with("host"))
        text.remove_prefix(4);
    unsigned found = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), found);
    return error == std::errc() && end == text.data() + text.size() && found <= MAX_HOSTS
               ? found
               : 0;
}

Fault read_fault(std::string_view text) {
    Fault fault;
    fault.text = text;
    Reader reader(fault, text);
    reader.read_when();
    reader.read_action();
    return fault;
}

Fault read_action(std::string_view text) {
    Fault fault;
    fault.text = text;
    Reader(fault, text).read_action();
    return fault;
}

std::string list_faults() {
    size_t name_width = 0, width = 0;
    for (const FaultKind &each : fault_kinds()) {
        name_width = std::max(name_width, strlen(each.name));
        width = std::max(width, strlen(each.arguments));
    }
    std::string list =
        "--fault 'WHEN ACTION [for TIME]', where WHEN is a time after the start (500ms,\n"
        "2s), 'after HOST [TIME]': when the COMMANDs of HOST have ended, or\n"
        "HOST:CALL[:N] [TIME]: before the Nth CALL of HOST, which is then the default HOST.\n"
        "'for TIME' ends an ACTION with a star after TIME.\n\n";
    for (const FaultKind &each : fault_kinds()) {
        std::string name = each.name;
        name.resize(name_width, ' ');
        append(list, "  " + name + (each.end ? " * " : "   ") + each.arguments,
               name_width + width + 5, each.text);
    }
    list += "\nEVENT:";
    for (const auto &each : EVENTS)
        list += std::string(" ") + each.name;
    list += "\nERRNO:";
    for (const auto &each : ERRORS)
        list += std::string(" ") + each.name;
    list += "\nCALL, and with a star those that the action fail can let fail:";
    size_t left = 0;
    for (const CallName &each : call_names()) {
        const std::string word = std::string(" ") + each.name + (each.creates ? "*" : "");
        if (word.size() > left) {
            list += "\n ";
            left = 78;
        }
        list += word;
        left -= word.size();
    }
    return list + "\n";
}

std::string list_explored_faults() {
    size_t width = 0;
    std::string list;
    for (const FaultKind &each : fault_kinds())
        width = std::max(width, strlen(each.name));
    for (const FaultKind &each : fault_kinds())
        if (*each.explored != '\0')
            append(list, each.name, width, each.text);
    append(list, "none", width, "no fault");
    return list;
}

} // namespace sim
