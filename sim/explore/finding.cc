// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// finding.cc -- a finding is a text file: a word and a value in each line
//
// A value has one form for each sequence of bytes: "\\" is a backslash, and "\xNN" each byte
// that is not printable ASCII.

#include "finding.hh"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

#include "../run/sim.hh"

namespace {

constexpr char FORMAT[] = "rdma-sim explore 2", FORMAT_OF_1_5[] = "rdma-sim explore 1";
constexpr size_t MAX_CONTENT = 1 << 20; // bytes of persistent memory that are not zero
constexpr size_t PART = 4096;           // of persistent memory in one line

// Variables of the session, which programs and findings do not depend on.
constexpr const char *SESSION_VARIABLES[] = {"_",
                                             "PWD",
                                             "OLDPWD",
                                             "SHLVL",
                                             "HOME",
                                             "USER",
                                             "LOGNAME",
                                             "HOSTNAME",
                                             "MAIL",
                                             "TERM",
                                             "COLORTERM",
                                             "COLUMNS",
                                             "LINES",
                                             "DISPLAY",
                                             "XAUTHORITY",
                                             "WINDOWID",
                                             "PS1",
                                             "LS_COLORS",
                                             "TMUX",
                                             "TMUX_PANE",
                                             "STY",
                                             "EDITOR",
                                             "INVOCATION_ID",
                                             "JOURNAL_STREAM",
                                             "TMPDIR",
                                             "WAYLAND_DISPLAY"};
constexpr const char *SESSION_PREFIXES[] = {"SSH_", "XDG_",  "DBUS_", "GPG_",      "GNOME_",
                                            "VTE_", "TERM_", "LESS",  "RDMA_SIM_", "RPMA_SIM_"};
constexpr const char *SECRETS[] = {"TOKEN",      "SECRET", "PASS", "KEY",
                                   "CREDENTIAL", "COOKIE", "AUTH"};

bool is_of_session(std::string_view name) {
    return std::ranges::find(SESSION_VARIABLES, name,
                             [](const char *each) { return std::string_view(each); }) !=
               std::end(SESSION_VARIABLES) ||
           std::ranges::any_of(SESSION_PREFIXES,
                               [&](const char *prefix) { return name.starts_with(prefix); });
}

bool is_secret(std::string_view name) {
    return std::ranges::any_of(SECRETS,
                               [&](const char *part) { return name.find(part) != name.npos; });
}

std::string escaped(std::string_view bytes) {
    std::string text;
    for (const char byte : bytes) {
        char code[8] = {byte};
        if (byte == '\\')
            snprintf(code, sizeof(code), "\\\\");
        else if (byte < ' ' || byte > '~')
            snprintf(code, sizeof(code), "\\x%02x", static_cast<unsigned char>(byte));
        text += code;
    }
    return text;
}

// Returns false if the text is not a result of escaped().
bool unescape(std::string_view text, std::string &bytes) {
    bytes.clear();
    for (size_t i = 0; i < text.size(); i++) {
        unsigned value = 0;
        if (text[i] != '\\') {
            bytes += text[i];
        } else if (i + 1 < text.size() && text[i + 1] == '\\') {
            bytes += text[++i];
        } else if (i + 3 < text.size() &&
                   sscanf(std::string(text.substr(i, 4)).c_str(), "\\x%2x", &value) == 1) {
            bytes += static_cast<char>(value);
            i += 3;
        } else {
            return false;
        }
    }
    return true;
}

// Divides "NAME=VALUE", or another text of two parts.
std::pair<std::string, std::string> divide(const std::string &text, char divider) {
    const size_t at = std::min(text.rfind(divider), text.size());
    return {text.substr(0, at), text.substr(std::min(at + 1, text.size()))};
}

std::string current_directory() {
    char *const path = getcwd(nullptr, 0);
    const std::string directory = path == nullptr ? "" : path;
    free(path);
    return directory;
}

// Adds a line to the finding. Returns false if it is invalid.
bool read_line(Finding &finding, const std::string &word, const std::string &value) {
    const auto [name, rest] = divide(value, word == "secret" ? '=' : ' ');
    sim::Choice choice{};
    if (word == "directory") {
        finding.directory = value;
    } else if (word == "finding") {
        finding.text = value;
    } else if (word == "argument") {
        finding.arguments.push_back(value);
    } else if (word == "variable") {
        const size_t at = value.find('=');
        if (at == value.npos)
            return false;
        finding.variables[value.substr(0, at)] = value.substr(at + 1);
    } else if (word == "secret") {
        finding.secrets[name] = rest;
    } else if (word == "file") {
        finding.files[name] = rest;
    } else if (word == "pmem") {
        const auto [path, size] = divide(name, ' ');
        finding.pmem[path] = {rest, std::string(strtoull(size.c_str(), nullptr, 10), '\0'),
                              false};
    } else if (word == "seed") {
        finding.seed = strtoull(value.c_str(), nullptr, 10);
    } else if (word == "strong") {
        const sim::WeaknessKind *const kind = sim::find_weakness(value);
        if (kind == nullptr)
            return false;
        finding.strong |= sim::only(*kind);
    } else if (word == "choice") {
        if (sscanf(value.c_str(), "%" SCNu64 " %u", &choice.position, &choice.option) != 2)
            return false;
        finding.choices.push_back(choice);
    } else {
        return false;
    }
    return true;
}

} // namespace

// FNV-1a of 64 bits: finds changes, but not those that somebody wants to hide.
std::string digest_of(std::string_view bytes) {
    uint64_t hash = 0xcbf29ce484222325;
    for (const char byte : bytes)
        hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
    char text[32];
    snprintf(text, sizeof(text), "fnv1a64:%016llx", static_cast<unsigned long long>(hash));
    return text;
}

std::string digest_of_file(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream content;
    if (!file || !(content << file.rdbuf()))
        return "";
    return digest_of(content.view());
}

void add_environment(Finding &finding) {
    finding.directory = current_directory();
    for (char **each = environ; *each != nullptr; each++) {
        const std::string_view variable = *each;
        const size_t at = std::min(variable.find('='), variable.size());
        const std::string name(variable.substr(0, at));
        const std::string_view value = variable.substr(std::min(at + 1, variable.size()));
        if (is_of_session(name) || name.empty())
            continue;
        if (is_secret(name))
            finding.secrets[name] = digest_of(value);
        else
            finding.variables[name] = value;
    }
}

std::vector<std::string> restore_environment(const Finding &finding) {
    std::vector<std::string> differences;
    if (current_directory() != finding.directory)
        differences.push_back(chdir(finding.directory.c_str()) == 0
                                  ? "it runs in " + printable(finding.directory)
                                  : printable(finding.directory) + " is missing");
    Finding now;
    add_environment(now);
    for (const auto &[name, value] : finding.variables) {
        const auto current = now.variables.find(name);
        if (current == now.variables.end() || current->second != value)
            differences.push_back("the variable " + printable(name) + " is set as saved");
        setenv(name.c_str(), value.c_str(), 1);
    }
    for (const auto &[name, digest] : finding.secrets)
        if (const auto current = now.secrets.find(name);
            current == now.secrets.end() || current->second != digest)
            differences.push_back("the variable " + printable(name) + " differs");
    for (const auto &[name, value] : now.variables)
        if (!finding.variables.contains(name))
            differences.push_back("the variable " + printable(name) + " was not set");
    return differences;
}

void add_pmem(Finding &finding, const std::string &path, const std::string &content) {
    const size_t zeros = static_cast<size_t>(std::ranges::count(content, '\0'));
    finding.pmem[path] = {digest_of(content), content, content.size() - zeros <= MAX_CONTENT};
}

void write_finding(const std::string &path, const Finding &finding) {
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    std::string text = std::string(FORMAT) + "\n";
    const auto add = [&](const char *word, const std::string &value) {
        text += std::string(word) + " " + escaped(value) + "\n";
    };
    add("directory", finding.directory);
    for (const std::string &each : finding.arguments)
        add("argument", each);
    for (const auto &[name, value] : finding.variables)
        add("variable", name + "=" + value);
    for (const auto &[name, digest] : finding.secrets)
        add("secret", name + "=" + digest);
    for (const auto &[file, digest] : finding.files)
        add("file", file + " " + digest);
    for (const auto &[file, saved] : finding.pmem) {
        add("pmem", file + " " + std::to_string(saved.content.size()) + " " + saved.digest);
        for (size_t at = 0; saved.has_content && at < saved.content.size(); at += PART)
            if (const std::string part = saved.content.substr(at, PART);
                part.find_first_not_of('\0') != part.npos)
                add("bytes", std::to_string(at) + "=" + part);
    }
    add("finding", finding.text);
    add("seed", std::to_string(finding.seed));
    for (size_t i = 0; i < finding.strong.size(); i++)
        if (finding.strong[i])
            add("strong", sim::kind_of(static_cast<sim::Weakness>(i)).name);
    for (const sim::Choice &each : finding.choices)
        add("choice", std::to_string(each.position) + " " + std::to_string(each.option));
    text += "end\n";
    int error = fd < 0 ? errno : 0;
    for (std::string_view rest = text; error == 0 && !rest.empty();) {
        const ssize_t length = write(fd, rest.data(), rest.size());
        error = length < 0 ? errno : 0;
        rest.remove_prefix(length < 0 ? 0 : static_cast<size_t>(length));
    }
    if (fd >= 0 && close(fd) != 0 && error == 0)
        error = errno;
    if (error != 0)
        refuse("--save %s: %s", path.c_str(), strerror(error));
}

Finding read_finding(const std::string &path) {
    Finding finding;
    std::ifstream file(path, std::ios::binary);
    std::string line, value;
    std::getline(file, line);
    if (line == FORMAT_OF_1_5)
        refuse("--replay %s: release 1.5 saved this finding, without the environment: explore "
               "again",
               path.c_str());
    bool is_good = line == FORMAT, has_end = false;
    SavedFile *pmem = nullptr;
    while (is_good && !has_end && std::getline(file, line)) {
        const size_t at = std::min(line.find(' '), line.size());
        const std::string word = line.substr(0, at);
        has_end = line == "end";
        is_good = has_end || unescape(line.substr(std::min(at + 1, line.size())), value);
        if (!is_good || has_end)
            break;
        if (word != "bytes") {
            is_good = read_line(finding, word, value);
            pmem = word == "pmem" ? &finding.pmem[divide(divide(value, ' ').first, ' ').first]
                                  : nullptr;
            continue;
        }
        const size_t equals = value.find('=');
        is_good = pmem != nullptr && equals != value.npos;
        if (!is_good)
            break;
        const size_t offset = strtoull(value.c_str(), nullptr, 10);
        const std::string part = value.substr(equals + 1);
        is_good = offset + part.size() <= pmem->content.size();
        if (is_good)
            pmem->content.replace(offset, part.size(), part);
    }
    if (!is_good || !has_end || finding.arguments.empty())
        refuse("--replay %s: not a finding that --save has written, or not all of it",
               path.c_str());
    for (auto &[name, saved] : finding.pmem)
        saved.has_content = digest_of(saved.content) == saved.digest;
    return finding;
}
