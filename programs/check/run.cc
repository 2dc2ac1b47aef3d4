// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// run.cc -- the client: asks all questions, compares the results, and reports

#include "run.hh"

#include "../info/info.hh"
#include "device_description.hh"
#include "expected.hh"
#include "output_file.hh"
#include "questions.hh"

#include <map>
#include <sstream>
#include <unistd.h>

namespace {

constexpr double CASES_S = 50, WHOLE_S = 95; // no question needs 20 s more

class Check {
  public:
    explicit Check(Session &of) : session_(of) {}
    Json run();

  private:
    void ask_device();
    void ask_cases(const std::string &name);
    void ask_requests();
    void ask_questions(const std::vector<Question> &all);
    void take_lines(const std::string &name, const Json &outcome);
    void progress(const std::string &question);
    void compare();
    void differ(const Expected &expected, const std::string &found);
    std::string own_address() const;

    Session &session_;
    const Clock clock_;
    Json report_;
    Json answers_ = Json::object(), promised_ = Json::object(), differences_ = Json::array();
    std::map<std::string, std::string> unfinished_; // by question: why there is no result
    bool skipped_ = false;                          // a question, because there was no time
    bool is_terminal_ = isatty(STDERR_FILENO) == 1;
};

// Only on a terminal; an empty text removes the line.
void Check::progress(const std::string &question) {
    if (is_terminal_)
        (void)std::fprintf(
            stderr, "\r\033[K%s",
            question.empty()
                ? ""
                : fmt::format("rpma-check: {:.0f} s: {}", clock_.seconds(), question).c_str());
}

// The cases need an IPv4 address.
std::string Check::own_address() const {
    const std::string device = ibv_get_device_name(session_.peer.get_ibv_pd()->context->device);
    if (session_.address.find(':') == std::string::npos)
        return session_.address;
    for (const ::Address &each : find_addresses())
        if (each.device == device && each.text.find(':') == std::string::npos)
            return each.text;
    return "";
}

void Check::ask_device() {
    progress("attributes");
    ibv_pd *const pd = session_.peer.get_ibv_pd();
    report_ = {{"format", 1},
               {"program", fmt::format("rpma-check {}.{}.{}", RPMA_VERSION_MAJOR,
                                       RPMA_VERSION_MINOR, RPMA_VERSION_PATCH)},
               {"device", describe_device(pd->context)},
               {"server", session_.server},
               {"attributes", attributes_of(pd->context, pd)}};
}

// A process that ended early leaves an incomplete line, and the reason without a tab.
void Check::take_lines(const std::string &name, const Json &outcome) {
    std::istringstream lines(outcome.at("output").get<std::string>());
    std::string last = "the beginning", reason;
    for (std::string line; std::getline(lines, line);)
        if (const size_t tab = line.find('\t'); tab == std::string::npos) {
            reason = line.substr(0, line.find(','));
        } else if (!lines.eof()) {
            last = line.substr(0, tab);
            answers_[last] = line.substr(tab + 1);
        }
    if (const std::string end = outcome.at("end"); !end.empty())
        unfinished_[fmt::format("{}: after \"{}\"", name, last)] =
            reason.empty() ? end : fmt::format("{}: {}", end, reason);
}

void Check::ask_cases(const std::string &name) {
    const std::string address = own_address();
    for (size_t i = 0; i < case_count(name) && !address.empty(); i++) {
        if (clock_.seconds() > CASES_S) {
            skipped_ = true;
            return;
        }
        check_stopping();
        progress(fmt::format("{} {} of {}", name, i + 1, case_count(name)));
        take_lines(fmt::format("{} {}", name, i + 1),
                   session_.helper.run_case(name, i, address));
    }
}

// The rest of the attributes.
void Check::ask_requests() {
    check_stopping();
    progress("requests");
    try {
        report_["attributes"].update(request_attributes(session_));
    } catch (const rpma::error &error) {
        unfinished_["requests"] = code_name(static_cast<rpma::status>(error.code().value()));
    } catch (const Late &late) {
        unfinished_["requests"] = late.what();
    }
}

void Check::ask_questions(const std::vector<Question> &all) {
    for (const Question &question : all) {
        Json &results = question.is_promise ? promised_ : answers_;
        if (clock_.seconds() > WHOLE_S) {
            skipped_ = true;
            return;
        }
        check_stopping();
        progress(question.name);
        try {
            for (const auto &[name, result] : question.ask(session_))
                results[fmt::format("{}: {}", question.name, name)] = result;
        } catch (const rpma::error &error) {
            unfinished_[question.name] =
                code_name(static_cast<rpma::status>(error.code().value()));
        } catch (const Late &late) {
            unfinished_[question.name] = late.what();
        } catch (const Json::exception &) { // the server could not do its part
            unfinished_[question.name] = "no result of the server";
        }
    }
}

void Check::differ(const Expected &expected, const std::string &found) {
    differences_.push_back({{"question", expected.question},
                            {"expected", expected.result},
                            {"source", expected.source},
                            {"found", found},
                            {"severity", severity_of(expected, found)}});
}

std::string text_of_value(const Json &value) {
    return value.is_boolean()  ? (value.get<bool>() ? "yes" : "no")
           : value.is_string() ? value.get<std::string>()
                               : value.dump();
}

void Check::compare() {
    const Json &device = report_.at("device");
    const std::string name =
        device_name(device.at("driver"), device.at("link").at("transport"));
    const Json *const compared[] = {&report_.at("attributes"), &answers_};
    for (const Expected &expected : expected_of(name, device.at("kernel")))
        for (const Json *const results : compared)
            if (const auto found = results->find(expected.question);
                found != results->end() && !agrees(text_of_value(*found), expected.result))
                differ(expected, text_of_value(*found));
    for (const auto &[question, result] : promised_.items()) {
        const char *expected = question.starts_with("refusal") ? "as documented" : "none";
        if (result != expected)
            differ({question, expected, "the manual of librpma", true}, result);
    }
    if (skipped_)
        unfinished_["time"] = "there was no time for all questions";
    for (const auto &[question, reason] : unfinished_)
        differ({question, "a result", "rpma-check", true}, reason);
}

Json Check::run() {
    ask_device();
    ask_cases("conformance");
    ask_cases("exchange");
    ask_questions(questions());
    ask_questions(verbs_questions());
    ask_requests();
    ask_questions(promises());
    ask_questions(timings());
    progress("");
    compare();
    report_["answers"] = answers_;
    report_["promises"] = promised_;
    report_["differences"] = differences_;
    return report_;
}

// ---- output ------------------------------------------------------------------------------

std::string summary_of(const Json &report) {
    const Json &device = report.at("device"), &link = device.at("link");
    std::string text = fmt::format(
        "{}, model {}, firmware {}, kernel {}, rdma-core {}, {}\n",
        device.at("driver").get<std::string>(), device.at("model").get<std::string>(),
        device.at("firmware").get<std::string>(), device.at("kernel").get<std::string>(),
        device.at("rdma_core").get<std::string>(), link.at("transport").get<std::string>());
    for (const Json &each : report.at("differences"))
        text += fmt::format(
            "{}: {}: {}, but {} is expected ({})\n", each.at("severity").get<std::string>(),
            each.at("question").get<std::string>(), each.at("found").get<std::string>(),
            each.at("expected").get<std::string>(), each.at("source").get<std::string>());
    const size_t results = report.at("attributes").size() + report.at("answers").size() +
                           report.at("promises").size();
    text +=
        fmt::format("{} results, {} differences\n", results, report.at("differences").size());
    if (device_name(device.at("driver"), link.at("transport")).empty())
        text += "rpma_devices(7) does not have this driver: please send a report\n";
    return text;
}

} // namespace

int run_client(const Options &options, Helper &helper) {
    std::optional<OutputFile> file;
    if (!options.report.empty())
        file.emplace(options.report);
    Session session(options, helper);
    const Json report = Check(session).run();
    try {
        (void)session.ask({{"do", "bye"}});
    } catch (const Lost &) { // all results are here
    }
    const std::string document = report.dump(2) + "\n";
    if (file)
        file->write(document);
    (void)std::fputs((options.json ? document : summary_of(report)).c_str(), stdout);
    return report.at("differences").empty() ? EXIT_AS_EXPECTED : EXIT_DIFFERENCES;
}
