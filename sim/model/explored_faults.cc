// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// explored_faults.cc -- the faults that a schedule of rdma-sim explore can choose.

#include "faults.hh"

#include <algorithm>

namespace sim {

namespace {

void replace(std::string &text, std::string_view word, const std::string &by) {
    if (const size_t at = text.find(word); at != text.npos)
        text.replace(at, word.size(), by);
}

std::string host_name(unsigned number) {
    return "host" + std::to_string(number);
}

// Adds each form of the text in which the placeholder is replaced.
class Forms {
  public:
    Forms(const ExploredHosts &hosts, std::string_view text) : hosts_(hosts) {
        texts_.push_back({std::string(text), 0});
    }
    void expand(std::vector<Fault> &faults) {
        const auto count = static_cast<unsigned>(hosts_.devices.size());
        std::vector<std::string> ways, links, all, pmem, creating, events;
        for (unsigned one = 1; one <= count; one++) {
            all.push_back(host_name(one));
            for (unsigned other = 1; other <= count; other++) {
                if (one != other)
                    ways.push_back(host_name(one) + " " + host_name(other));
                if (one < other)
                    links.push_back(ways.back());
            }
        }
        for (const unsigned host : hosts_.pmem)
            pmem.push_back(host_name(host));
        for (const CallName &each : call_names())
            if (each.creates)
                creating.push_back(each.name);
        for (const auto &each : fault_events())
            events.push_back(each.name);
        fill("WAY", ways);
        fill("LINK", links);
        fill("HOST", all);
        fill("PMEM", pmem);
        fill("CREATING", creating);
        fill("EVENT", events);
        fill_programs();
        for (const auto &[text, program] : texts_) {
            Fault fault = read_action(text);
            fault.program = program;
            if (std::ranges::all_of(fault.hosts, [&](unsigned host) {
                    return is_possible(*hosts_.devices[host - 1], fault);
                }))
                faults.push_back(std::move(fault));
        }
    }

  private:
    struct Form {
        std::string text;
        unsigned program;
    };
    void fill(std::string_view word, const std::vector<std::string> &values) {
        std::vector<Form> filled;
        for (const Form &form : texts_)
            if (form.text.find(word) == form.text.npos)
                filled.push_back(form);
            else
                for (const std::string &value : values)
                    replace((filled.emplace_back(form)).text, word, value);
        texts_ = std::move(filled);
    }
    void fill_programs() {
        std::vector<Form> filled;
        for (const Form &form : texts_)
            if (form.text.find("PROGRAM") == form.text.npos)
                filled.push_back(form);
            else
                for (unsigned i = 0; i < hosts_.programs.size(); i++) {
                    replace(filled.emplace_back(form).text, "PROGRAM",
                            host_name(hosts_.programs[i]));
                    filled.back().program = i + 1;
                }
        texts_ = std::move(filled);
    }
    const ExploredHosts &hosts_;
    std::vector<Form> texts_;
};

} // namespace

bool is_explored(std::string_view name) {
    return std::ranges::any_of(fault_kinds(), [&](const FaultKind &each) {
        return *each.explored != '\0' && (name == each.name || name == each.former_name) &&
               !name.empty();
    });
}

size_t ExploredFaults::size() const {
    size_t count = 0;
    for (const Group &group : groups)
        count += group.faults.size();
    return count;
}

const Fault &ExploredFaults::operator[](size_t number) const {
    auto group = groups.begin();
    for (; number >= group->faults.size(); group++)
        number -= group->faults.size();
    return group->faults[number];
}

size_t ExploredFaults::choose(uint64_t random) const {
    if (groups.size() == 1)
        return random % groups[0].faults.size();
    uint64_t weights = 0, number = 0;
    for (const Group &group : groups)
        weights += group.kind->weight;
    uint64_t left = random % weights;
    for (const Group &group : groups) {
        if (left < group.kind->weight)
            return number + random / weights % group.faults.size();
        left -= group.kind->weight;
        number += group.faults.size();
    }
    return 0; // not reached
}

std::optional<size_t> ExploredFaults::choose(std::string_view name, uint64_t random,
                                             unsigned program) const {
    std::vector<size_t> numbers;
    for (size_t number = 0; number < size(); number++)
        if (const Fault &fault = (*this)[number];
            fault.kind->name == name && (program == 0 || fault.program == program))
            numbers.push_back(number);
    if (numbers.empty())
        return std::nullopt;
    return numbers[random % numbers.size()];
}

ExploredFaults explored_faults(const ExploredHosts &hosts,
                               const std::vector<std::string_view> &names) {
    ExploredFaults found;
    for (const FaultKind &each : fault_kinds()) {
        ExploredFaults::Group group{&each, {}};
        if (!names.empty() && std::ranges::find(names, each.name) == names.end() &&
            std::ranges::find(names, each.former_name) == names.end())
            continue;
        for (const std::string_view text : split_words(each.explored, ";"))
            Forms(hosts, text).expand(group.faults);
        if (!group.faults.empty())
            found.groups.push_back(std::move(group));
    }
    return found;
}

ExploredFaults lasting_faults(const ExploredHosts &hosts, std::string_view name) {
    ExploredFaults found = explored_faults(hosts, {name});
    for (ExploredFaults::Group &group : found.groups)
        std::erase_if(group.faults, [](const Fault &fault) { return fault.lasts != 0; });
    return found;
}

} // namespace sim
