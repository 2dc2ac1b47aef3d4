// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// schedule.cc -- choices: random ones, recorded ones, or all one after the other

#include "schedule.hh"

#include <cinttypes>
#include <cstdio>

// The frequency and the kinds of events differ from run to run: with rare faults a schedule
// gets far, other schedules have many close together, and others repeat a few kinds.
Schedule Schedule::random(uint64_t seed, uint32_t kinds) {
    Schedule schedule;
    uint64_t state = seed;
    schedule.salt = next_random(state);
    schedule.m_random = true;
    schedule.m_faults = static_cast<unsigned>(next_random(state) % 7);
    schedule.m_fault_limit = (uint64_t{1} << 32) / (uint64_t{16} << next_random(state) % 5);
    schedule.m_other_limit = (uint64_t{1} << 32) / (uint64_t{2} << next_random(state) % 7);
    schedule.m_kinds = static_cast<uint32_t>(next_random(state) | next_random(state));
    if (kinds != UINT32_MAX)
        schedule.m_kinds = kinds;
    schedule.m_state = state;
    return schedule;
}

void Schedule::begin() {
    m_position = m_next = 0;
}

bool Schedule::is_usual() {
    if (listed)
        return false;
    if (m_random) {
        uint64_t draw = next_random(m_state);
        m_fault = m_faults && draw >> 32 < m_fault_limit;
        if (m_fault || (draw & UINT32_MAX) < m_other_limit)
            return false;
    } else if (m_next < choices.size() && choices[m_next].position == m_position) {
        return false;
    }
    m_position++;
    return true;
}

void Schedule::stop() {
    if (m_random)
        choices.push_back({m_position, 0});
}

// Gives each kind of event the same chance, however many connections there are.
const Event *Schedule::pick(const Event *begin, const Event *end) {
    const Event *found = nullptr;
    uint64_t kinds = 0;
    for (const Event *kind = begin; kind < end;) {
        const Event *next = kind;
        while (next < end && next->kind == kind->kind)
            next++;
        uint64_t draw = next_random(m_state);
        if (m_kinds >> kind->kind & 1 && (draw >> 32) % ++kinds == 0)
            found = kind + (draw & UINT32_MAX) % static_cast<uint64_t>(next - kind);
        kind = next;
    }
    return found;
}

bool Schedule::choose(const std::vector<Event> &options, Event &event) {
    if (listed)
        listed->push_back(options);
    uint32_t position = m_position++, option = 0;
    if (m_random) {
        size_t fault = 0;
        while (fault < options.size() && options[fault].kind < Event::FIRST_FAULT)
            fault++;
        const Event *begin = options.data(), *middle = begin + fault;
        const Event *picked =
            m_fault ? pick(middle, begin + options.size()) : pick(begin, middle);
        if (picked) {
            option = static_cast<uint32_t>(picked - begin) + 1;
            if (!choices.empty() && choices.back().position == position)
                choices.pop_back(); // the stop
            choices.push_back({position, option});
            m_faults -= m_fault;
        }
    } else if (m_next < choices.size() && choices[m_next].position == position) {
        option = choices[m_next++].option;
    }
    if (option == 0 || option > options.size())
        return false;
    event = options[option - 1];
    return true;
}

void Schedule::stop_faults() {
    m_faults = 0;
}

bool Schedule::save(const char *name, const std::string &configuration) const {
    FILE *file = fopen(name, "w");
    if (!file)
        return false;
    fprintf(file, "configuration %s\nsalt %" PRIx64 "\n", configuration.c_str(), salt);
    for (const Choice &choice : choices)
        fprintf(file, "%u %u\n", choice.position, choice.option);
    return !fclose(file);
}

bool Schedule::load(const char *name, std::string &configuration) {
    char text[64];
    FILE *file = fopen(name, "r");
    if (!file)
        return false;
    bool good = fscanf(file, "configuration %63s\nsalt %" SCNx64 "\n", text, &salt) == 2;
    configuration = text;
    for (Choice choice; fscanf(file, "%u %u\n", &choice.position, &choice.option) == 2;)
        choices.push_back(choice);
    good = good && feof(file);
    fclose(file);
    return good;
}
