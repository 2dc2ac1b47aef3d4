// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// chart.cc -- a sequence chart: a column for each host, and a row for each step
//
// The text of a step is beside its row, so that it can wrap on a narrow screen; a message is an
// arrow in the row in which it arrives.

#include "chart.hh"

#include <cstdio>

namespace {

constexpr const char STYLE[] = R"(
:root { color-scheme: light dark; --line: #9aa5b1; --ink: #1f2933; --paper: #fff; --stripe: #f5f7fa; }
@media (prefers-color-scheme: dark) { :root { --line: #7b8794; --ink: #e4e7eb; --paper: #14181d; --stripe: #1f262e; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1400px; padding: 8px; font: 15px/1.4 system-ui, sans-serif; color: var(--ink);
       background: var(--paper); }
h1 { font-size: 18px; overflow-wrap: anywhere; }
ol { list-style: none; margin: 0; padding: 0; }
li { position: relative; min-height: 25px; padding-left: calc(var(--hosts) * var(--column)); }
ol { --column: 44px; }
@media (min-width: 800px) { ol { --column: 110px; } }
li.hosts { position: sticky; top: 0; background: var(--paper); font-weight: 600; z-index: 1; }
li:nth-child(even) > p { background: var(--stripe); }
li > svg { position: absolute; left: 0; top: 0; width: calc(var(--hosts) * var(--column)); height: 100%; }
li > p { margin: 0; padding: 2px 8px; overflow-wrap: anywhere; min-width: 0; }
time, .place { color: #6b7785; font-size: 13px; }
@media (prefers-color-scheme: dark) { time, .place { color: #9fb0c0; } }
b { font-weight: 600; }
svg text { fill: var(--ink); font: 600 12px system-ui, sans-serif; text-anchor: middle; }
svg line { stroke: var(--line); stroke-width: 2; }
svg .call { fill: var(--line); }
svg .message, svg .completion { stroke: #2b6cb0; fill: #2b6cb0; }
svg .visible { stroke: #0f8a5f; fill: #0f8a5f; }
svg .persistent { fill: #0f8a5f; }
svg .fault { stroke: #d64545; fill: #d64545; }
li.choice > p, li.fault > p { border-left: 4px solid #d97706; }
li.fault > p, li.lost > p { border-left: 4px solid #d64545; }
li.persistent > p { border-left: 4px solid #0f8a5f; }
li.found > p { border: 2px solid #d64545; font-weight: 600; }
)";

std::string escaped_html(const std::string &text) {
    std::string all;
    for (const char byte : text)
        all += byte == '&'    ? "&amp;"
               : byte == '<'  ? "&lt;"
               : byte == '>'  ? "&gt;"
               : byte == '"'  ? "&quot;"
               : byte == '\'' ? "&#39;"
               : static_cast<unsigned char>(byte) < ' ' || byte == '\x7f' ||
                       static_cast<unsigned char>(byte) >= 0x80
                   ? "?"
                   : std::string(1, byte);
    return all;
}

const char *class_of(const Step &step) {
    constexpr const char *CLASSES[] = {"call",   "message",    "visible", "persistent",
                                       "lost",   "completion", "choice",  "fault",
                                       "output", "process",    "found"};
    return CLASSES[step.kind];
}

// The centre of the column of a host.
std::string column(unsigned host, unsigned hosts) {
    char text[32];
    snprintf(text, sizeof(text), "%.2f%%", (host - 0.5) * 100 / hosts);
    return text;
}

std::string line(const std::string &from, const std::string &to, const char *kind) {
    return "<line class=\"" + std::string(kind) + "\" x1=\"" + from + "\" x2=\"" + to +
           "\" y1=\"12\" y2=\"12\"/>";
}

// The mark of a step at its host: a square is persistent, a cross is lost.
std::string mark(const Step &step, const std::string &x) {
    const std::string kind = class_of(step);
    const std::string at = "<svg x=\"" + x + "\" y=\"12\" overflow=\"visible\">";
    switch (step.kind) {
    case Step::PERSISTENT:
        return at + "<rect class=\"persistent\" x=\"-6\" y=\"-6\" width=\"12\" "
                    "height=\"12\"/></svg>";
    case Step::LOST:
    case Step::FAULT:
    case Step::FOUND:
        return at + "<path class=\"fault\" stroke-width=\"3\" d=\"M-6-6L6 6M-6 6L6-6\"/></svg>";
    default:
        return at + "<circle class=\"" + kind + "\" r=\"" +
               (step.kind == Step::VISIBLE ? "6" : "4") + "\"/></svg>";
    }
}

std::string picture(const Step &step, unsigned hosts) {
    std::string all = "<svg aria-hidden=\"true\">";
    for (unsigned host = 1; host <= hosts; host++)
        all += "<line x1=\"" + column(host, hosts) + "\" x2=\"" + column(host, hosts) +
               "\" y1=\"0\" y2=\"100%\"/>";
    if (step.host == 0 || step.host > hosts)
        return all + (step.is_choice() ? line("0%", "100%", "fault") : "") + "</svg>";
    const std::string x = column(step.host, hosts);
    if (step.from != 0 && step.from != step.host && step.from <= hosts) {
        const bool goes_right = step.from < step.host;
        all += line(column(step.from, hosts), x, class_of(step)) + "<svg x=\"" + x +
               "\" y=\"12\" overflow=\"visible\"><path class=\"" + class_of(step) + "\" d=\"" +
               (goes_right ? "M-4 0L-14-5V5Z" : "M4 0L14-5V5Z") + "\"/></svg>";
    }
    return all + mark(step, x) + "</svg>";
}

} // namespace

std::string chart(const std::string &finding, unsigned hosts, const std::vector<Step> &steps,
                  const SourceLines &lines) {
    const std::string title = escaped_html(finding);
    std::string all =
        "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n"
        "<head>\n<meta charset=\"utf-8\"/>\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
        "<title>" +
        title + "</title>\n<style>" + STYLE + "</style>\n</head>\n<body>\n<h1>" + title +
        "</h1>\n<p>Each arrow is a message that arrives. A green circle: bytes are "
        "visible; a green square: they are persistent; a red cross: a fault, or "
        "a loss.</p>\n<ol style=\"--hosts: " +
        std::to_string(hosts) + "\">\n<li class=\"hosts\"><svg aria-hidden=\"true\">";
    for (unsigned host = 1; host <= hosts; host++)
        all += "<text x=\"" + column(host, hosts) + "\" y=\"16\">" +
               (hosts <= 4 ? "host" : "") + std::to_string(host) + "</text>";
    all += "</svg><p></p></li>\n";
    for (const Step &step : steps) {
        const std::string place = lines.at(step.place);
        all +=
            "<li class=\"" + std::string(class_of(step)) + "\">" + picture(step, hosts) +
            "<p><time>" + time_of(step) + "</time> <b>" + escaped_html(step.who) + "</b> " +
            escaped_html(describe(step)) +
            (place.empty() ? "" : " <span class=\"place\">" + escaped_html(place) + "</span>") +
            "</p></li>\n";
    }
    return all + "</ol>\n</body>\n</html>\n";
}
