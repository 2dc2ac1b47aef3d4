// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// report.cc -- a report of a device as a device: the profile of its driver, with the
// attributes and answers of the report

#include "sim.hh"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <forward_list>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

namespace {

using nlohmann::json;

constexpr int FORMAT = 1;
constexpr size_t MAX_SIZE = 4 << 20; // of a file
constexpr int MAX_DEPTH = 8;         // of objects and arrays

enum class Kind { NUMBER, YES_NO, ERROR, CONSTANT, BITS, BEHAVIOUR };
enum class Form { NUMBER, ERROR, NULL_ERROR, STATUS, WORDS };

struct Word {
    const char *name;
    uint64_t value;
};

// A property of sim/device/devices.tsv.
struct Attribute {
    const char *name;
    Kind kind;
    uint64_t most;                        // of the member's type
    void (*set)(sim_profile &, uint64_t); // nullptr: all devices of the fabric have `fixed`
    uint64_t fixed;
    std::vector<Word> words;
};

// A row of sim/device/answers.tsv.
struct Answer {
    Form form;
    const char *attribute, *question;
    std::vector<Word> words;
};

template <class T> constexpr uint64_t most_of() {
    if constexpr (std::is_enum_v<T>)
        return std::numeric_limits<uint32_t>::max();
    else
        return static_cast<uint64_t>(std::numeric_limits<T>::max());
}

#define TYPE(member) std::remove_reference_t<decltype(std::declval<sim_profile &>().member)>
#define MEMBER(kind, name, member, ...)                            \
    {                                                              \
        name, Kind::kind, most_of<TYPE(member)>(),                 \
            [](sim_profile &profile, uint64_t value) {             \
                profile.member = static_cast<TYPE(member)>(value); \
            },                                                     \
            0, {                                                   \
            __VA_ARGS__                                            \
        }                                                          \
    }
#define FIXED(kind, name, value)                         \
    {                                                    \
        name, Kind::kind, UINT32_MAX, nullptr, value, {} \
    }
#define ANSWER(form, attribute, question, ...) \
    {                                          \
        Form::form, attribute, question, {     \
            __VA_ARGS__                        \
        }                                      \
    }

#include "replay.inc"

// Numbers that the fabric can simulate, if these are fewer than those of the type.
constexpr struct {
    const char *name;
    uint64_t least, most;
} LIMITS[] = {
    {"vectors", 1, 4096},
    {"gid_entries", 1, 4096},
    {"max_inline", 0, sim::MAX_INLINE},
    {"max_send_sge", 1, sim::MAX_SGES},
    {"inline_per_sge", 0, 256},
    {"max_recv_sge", 1, sim::MAX_SGES},
    {"attr.max_sge", 1, sim::MAX_SGES},
    {"attr.max_sge_rd", 1, sim::MAX_SGES},
    {"attr.max_srq_sge", 0, sim::MAX_SGES},
    {"attr.max_qp_wr", 1, 1 << 24},
    {"attr.max_srq_wr", 0, 1 << 24},
    {"attr.max_cqe", 1, 1 << 24},
};

template <class Table> auto find(const Table &table, std::string_view name) {
    return std::ranges::find(table, name,
                             [](const auto &row) { return std::string_view(row.name); });
}

// ---- values --------------------------------------------------------------------------------

// Returns the number of "ENOMEM" or "-ENOMEM" for a member of type int, or no value.
std::optional<uint64_t> read_error(std::string_view text) {
    if (text == "0" || text == "-1")
        return static_cast<uint64_t>(text == "0" ? 0 : -1);
    const bool is_negative = text.starts_with('-');
    const std::string name(text.substr(is_negative));
    for (int error = 1; error <= EHWPOISON; error++)
        if (const char *each = strerrorname_np(error); each != nullptr && name == each)
            return static_cast<uint64_t>(is_negative ? -error : error);
    return {};
}

std::optional<uint64_t> read_bits(const Attribute &attribute, std::string_view text) {
    const bool is_inverse = text.starts_with("all but ");
    uint64_t bits = 0;
    text.remove_prefix(is_inverse ? strlen("all but ") : 0);
    for (bool is_last = text == "none"; !is_last;) {
        const size_t end = text.find(' ');
        const auto word = find(attribute.words, text.substr(0, end));
        if (word == attribute.words.end())
            return {};
        bits |= word->value;
        is_last = end == text.npos;
        text.remove_prefix(is_last ? text.size() : end + 1);
    }
    return is_inverse ? ~bits : bits;
}

class Replay {
  public:
    Replay(const std::string &path, const json &report)
        : path_(path), report_(report), profile_(base()) {}
    sim_profile make();

  private:
    [[noreturn]] void fail(const std::string &why) const {
        refuse("--device %s: %s", path_.c_str(), why.c_str());
    }
    const json &member(const json &object, const char *name, json::value_t type) const;
    const sim_profile &base() const;
    std::optional<uint64_t> value_of(const Attribute &attribute, const json &value) const;
    std::optional<uint64_t> value_of(const Answer &answer, const std::string &result) const;
    bool set(const Attribute &attribute, std::optional<uint64_t> value);
    void replay_attributes();
    void replay_answers();

    const std::string &path_;
    const json &report_;
    sim_profile profile_;
    std::vector<std::string> missing_; // what the fabric cannot express
};

const json &Replay::member(const json &object, const char *name, json::value_t type) const {
    const auto found = object.find(name);
    if (found == object.end() || found->type() != type)
        fail(std::string("it is not a report of a device: '") + name + "' is missing or wrong");
    return *found;
}

// The simulated device with the driver and the transport of the report.
const sim_profile &Replay::base() const {
    const json &device = member(report_, "device", json::value_t::object);
    const std::string driver = member(device, "driver", json::value_t::string);
    const std::string transport = member(member(device, "link", json::value_t::object),
                                         "transport", json::value_t::string);
    for (const sim_profile &each : std::span(sim_profiles, sim_profile_count)) {
        const char *const name = each.transport == SIM_INFINIBAND ? "IB"
                                 : each.transport == SIM_ROCE     ? "RoCE"
                                                                  : "iWARP";
        if (driver == each.driver && transport == name)
            return each;
    }
    fail("there is no device with the driver '" + driver + "' and the transport '" + transport +
         "': rdma-sim-devices(7) lists the drivers");
}

// Refuses a value that no device can have. Returns no value for one that the fabric cannot
// have.
std::optional<uint64_t> Replay::value_of(const Attribute &attribute, const json &value) const {
    const auto expect = [&](bool is_valid, const std::string &what) {
        if (!is_valid)
            fail(std::string(attribute.name) + " is " + what + ", not " + value.dump());
    };
    const std::string range = "a number from 0 to " + std::to_string(attribute.most);
    if (attribute.kind == Kind::YES_NO) {
        expect(value.is_boolean(), "true or false");
        return value.get<bool>();
    }
    if (attribute.kind == Kind::NUMBER ||
        (attribute.kind == Kind::BITS && !value.is_string())) {
        expect(value.is_number_unsigned() && value.get<uint64_t>() <= attribute.most, range);
        const auto number = value.get<uint64_t>();
        const auto *const limit = find(LIMITS, attribute.name);
        return limit == std::end(LIMITS) || (number >= limit->least && number <= limit->most)
                   ? std::optional(number)
                   : std::nullopt;
    }
    expect(value.is_string(), "a text");
    const auto &text = value.get_ref<const std::string &>();
    if (attribute.kind == Kind::BITS)
        return read_bits(attribute, text);
    if (attribute.kind == Kind::ERROR) {
        const std::optional<uint64_t> error = read_error(text);
        expect(error.has_value(), "the name of an error");
        return error;
    }
    const auto word = find(attribute.words, text);
    return word == attribute.words.end() ? std::nullopt : std::optional(word->value);
}

std::optional<uint64_t> Replay::value_of(const Answer &answer,
                                         const std::string &result) const {
    uint64_t number = 0;
    switch (answer.form) {
    case Form::NUMBER: {
        const char *const end = result.data() + result.size();
        const auto [rest, error] = std::from_chars(result.data(), end, number);
        return error == std::errc() && rest == end
                   ? value_of(*find(ATTRIBUTES, answer.attribute), number)
                   : std::nullopt;
    }
    case Form::ERROR:
        return read_error(result);
    case Form::NULL_ERROR:
        return result.starts_with("NULL ") ? read_error(result.substr(5)) : std::nullopt;
    case Form::STATUS:
        for (int status = IBV_WC_LOC_LEN_ERR; status <= IBV_WC_GENERAL_ERR; status++)
            if (result == ibv_wc_status_str(static_cast<ibv_wc_status>(status)))
                return static_cast<uint64_t>(status);
        return {};
    case Form::WORDS:
        break;
    }
    const auto word = find(answer.words, result);
    return word == answer.words.end() ? std::nullopt : std::optional(word->value);
}

// ---- the report ----------------------------------------------------------------------------

// Returns false if the fabric cannot have the value.
bool Replay::set(const Attribute &attribute, std::optional<uint64_t> value) {
    if (!value || attribute.set == nullptr)
        return value == attribute.fixed;
    attribute.set(profile_, *value);
    return true;
}

void Replay::replay_attributes() {
    for (const auto &[name, value] :
         member(report_, "attributes", json::value_t::object).items()) {
        const auto *const attribute = find(ATTRIBUTES, name);
        if (attribute == std::end(ATTRIBUTES))
            fail("there is no attribute '" + name + "'");
        if (!set(*attribute, value_of(*attribute, value)))
            missing_.push_back(name + " " + value.dump());
    }
    profile_.attr.max_qp_init_rd_atom = profile_.attr.max_qp_rd_atom;
}

// An answer without a row in the table is that of the driver's device, unless it is a
// difference.
void Replay::replay_answers() {
    const json &answers = member(report_, "answers", json::value_t::object);
    std::vector<std::string> expressed;
    for (const auto &[question, result] : answers.items()) {
        const auto *const answer =
            std::ranges::find(ANSWERS, std::string_view(question),
                              [](const Answer &row) { return std::string_view(row.question); });
        if (!result.is_string())
            fail("the answer to '" + question + "' is a text, not " + result.dump());
        if (answer != std::end(ANSWERS) &&
            set(*find(ATTRIBUTES, answer->attribute), value_of(*answer, result)))
            expressed.push_back(question);
    }
    for (const json &each : member(report_, "differences", json::value_t::array)) {
        const std::string question = member(each, "question", json::value_t::string);
        if (answers.contains(question) &&
            std::ranges::find(expressed, question) == expressed.end())
            missing_.push_back("\"" + question + "\"");
    }
}

sim_profile Replay::make() {
    const std::string firmware = member(report_["device"], "firmware", json::value_t::string);
    replay_attributes();
    replay_answers();
    if (!profile_.has_srq)
        profile_.attr.max_srq = profile_.attr.max_srq_wr = profile_.attr.max_srq_sge = 0;
    snprintf(profile_.attr.fw_ver, sizeof(profile_.attr.fw_ver), "%s", firmware.c_str());
    std::string line;
    for (const std::string &each : missing_)
        line += (line.empty() ? "" : ", ") + each;
    if (!line.empty())
        fprintf(stderr, "rdma-sim: --device %s: not replayed: %s\n", printable(path_).c_str(),
                printable(line).c_str());
    return profile_;
}

std::string read_file(const std::string &path) {
    errno = 0;
    std::ifstream file(path, std::ios::binary);
    std::string text(MAX_SIZE + 1, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<size_t>(file.gcount()));
    if (errno != 0)
        refuse("--device %s: %s", path.c_str(), strerror(errno));
    if (text.size() > MAX_SIZE)
        refuse("--device %s: it is larger than a report, which has at most 4 MiB",
               path.c_str());
    return text;
}

} // namespace

const sim_profile *read_report(const std::string &path) {
    static std::forward_list<sim_profile> profiles; // the fabric keeps pointers
    const auto check_depth = [&](int depth, json::parse_event_t, const json &) {
        if (depth > MAX_DEPTH)
            refuse("--device %s: it is not a report of a device", path.c_str());
        return true;
    };
    json report;
    try {
        report = json::parse(read_file(path), check_depth);
    } catch (const json::parse_error &error) {
        refuse("--device %s: it is not JSON: byte %zu", path.c_str(), error.byte);
    }
    if (!report.is_object() || !report.contains("format"))
        refuse("--device %s: it is not a report of a device", path.c_str());
    if (report["format"] != FORMAT)
        refuse("--device %s: the report has format %s; this rdma-sim reads %d", path.c_str(),
               report["format"].dump().c_str(), FORMAT);
    return &profiles.emplace_front(Replay(path, report).make());
}
