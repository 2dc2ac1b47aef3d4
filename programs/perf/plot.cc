// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// plot.cc -- an SVG of the results: the latency over time, and its distribution

#include "plot.hh"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace {

constexpr double WIDTH = 960, ROW_HEIGHT = 300, TOP = 56, HEIGHT = 190;
constexpr size_t BINS = 60;
constexpr char BLUE[] = "#1f6fb4", RED[] = "#c8502d", GREY[] = "#606060", GRID[] = "#d8d8d8";

// Values from low to high, in pixels from begin to end.
struct Axis {
    double low, high, begin, end;
    bool is_log;

    double at(double value) const {
        const double part = is_log ? std::log(std::max(value, low) / low) / std::log(high / low)
                                   : (value - low) / (high - low);
        return begin + part * (end - begin);
    }

    std::vector<double> ticks() const {
        static const std::vector<double> FEW = {1}, SOME = {1, 2, 5},
                                         MANY = {1, 1.5, 2, 3, 4, 5, 6, 8};
        std::vector<double> found;
        const double decade = std::pow(10, std::floor(std::log10(is_log ? low : high / 4)));
        if (is_log) {
            for (double power = decade; power <= high; power *= 10)
                for (const double digit : high / low > 1000 ? FEW
                                          : high / low > 5  ? SOME
                                                            : MANY)
                    if (const double value = digit * power; value >= low && value <= high)
                        found.push_back(value);
            return found;
        }
        const double rest = high / 4 / decade;
        const double step = decade * (rest < 2 ? 1 : rest < 5 ? 2 : 5);
        for (double value = 0; value <= high * 1.0001; value += step)
            found.push_back(value);
        return found;
    }
};

// A scale for all latencies of the histogram, which may be empty.
Axis latency_axis(const Histogram &all, double begin, double end) {
    const double low = std::max(us_of(std::min(all.min, all.max)), 0.001) * 0.9;
    return {low, std::max(us_of(all.max) * 1.1, low * 2), begin, end, true};
}

class Picture {
  public:
    explicit Picture(size_t rows) {
        fmt::format_to(out(),
                       "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
                       "viewBox=\"0 0 {0} {1}\" font-family=\"DejaVu Sans, sans-serif\" "
                       "font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" "
                       "fill=\"white\"/>\n",
                       WIDTH, ROW_HEIGHT * static_cast<double>(rows));
    }

    void row(const Result &result, double top) {
        text(WIDTH / 2, top + 20, "middle",
             fmt::format("{}, {} bytes: {} operations, {:.0f} per second, {:.2f} MiB/s",
                         result.op().name, result.size, result.operations, result.rate(),
                         result.mib_per_second()),
             14);
        over_time(result, top + TOP);
        distribution(result, top + TOP);
    }

    std::string end() { return svg_ + "</svg>\n"; }

  private:
    std::back_insert_iterator<std::string> out() { return std::back_inserter(svg_); }

    void text(double x, double y, const char *anchor, std::string_view content, int size = 12,
              const char *colour = "#303030") {
        fmt::format_to(out(),
                       "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{}\" "
                       "fill=\"{}\">{}</text>\n",
                       x, y, anchor, size, colour, content);
    }

    void line(double x1, double y1, double x2, double y2, const char *colour,
              const char *dashes = "none") {
        fmt::format_to(out(),
                       "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" "
                       "stroke=\"{}\" stroke-dasharray=\"{}\"/>\n",
                       x1, y1, x2, y2, colour, dashes);
    }

    void axes(const Axis &x, const Axis &y, std::string_view x_title, std::string_view title) {
        for (const double value : y.ticks()) {
            line(x.begin, y.at(value), x.end, y.at(value), GRID);
            text(x.begin - 6, y.at(value) + 4, "end", fmt::format("{:.9g}", value));
        }
        for (const double value : x.ticks()) {
            line(x.at(value), y.begin, x.at(value), y.begin + 4, GREY);
            text(x.at(value), y.begin + 18, "middle", fmt::format("{:.9g}", value));
        }
        line(x.begin, y.begin, x.end, y.begin, GREY);
        line(x.begin, y.begin, x.begin, y.end, GREY);
        text((x.begin + x.end) / 2, y.begin + 36, "middle", x_title);
        text(x.begin - 6, y.end - 10, "start", title);
    }

    template <class Value>
    void curve(const Result &result, const Axis &x, const Axis &y, const char *colour,
               Value value) {
        std::string points;
        bool has_previous = false; // no line crosses an interval without completions
        for (size_t i = 0; i < result.intervals.size(); i++) {
            const Interval &interval = result.intervals[i];
            const double middle =
                (static_cast<double>(i) + 0.5) * static_cast<double>(result.interval_ns) / 1e9;
            if (interval.count)
                fmt::format_to(std::back_inserter(points), "{}{:.1f},{:.1f}{}",
                               has_previous ? "L" : "M", x.at(std::min(middle, x.high)),
                               y.at(value(interval)), has_previous ? "" : "h0");
            has_previous = interval.count;
        }
        fmt::format_to(out(),
                       "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\" "
                       "stroke-linecap=\"round\"/>\n",
                       points, colour);
    }

    void over_time(const Result &result, double top) {
        const Axis x{0, std::max(result.seconds, 0.001), 70, 470, false};
        const Axis y = latency_axis(result.latency, top + HEIGHT, top);
        axes(x, y, "seconds", "latency in µs, over time");
        text(x.end, top - 10, "end", "maximum", 12, RED);
        text(x.end - 70, top - 10, "end", "mean", 12, BLUE);
        curve(result, x, y, RED, [](const Interval &all) { return us_of(all.max); });
        curve(result, x, y, BLUE, [](const Interval &all) {
            return us_of(all.sum) / static_cast<double>(all.count);
        });
    }

    // `below` keeps the labels of two marks apart if they have the same position.
    void mark(const Axis &x, const Axis &y, double us, const char *name, double below) {
        line(x.at(us), y.begin, x.at(us), y.end, RED, "4 3");
        text(x.at(us) + 3, y.end + below, "start", name, 11, RED);
    }

    void distribution(const Result &result, double top) {
        const Histogram &latency = result.latency;
        const Axis x = latency_axis(latency, 550, 930);
        std::array<uint64_t, BINS> bins{};
        for (unsigned bucket = 0; bucket < Histogram::BUCKETS; bucket++) {
            if (!latency.buckets[bucket])
                continue;
            const uint64_t value =
                std::clamp(Histogram::greatest_of(bucket), latency.min, latency.max);
            const double part = (x.at(us_of(value)) - x.begin) / (x.end - x.begin);
            bins[std::min(static_cast<size_t>(part * BINS), BINS - 1)] +=
                latency.buckets[bucket];
        }
        const double all = static_cast<double>(std::max(latency.count, UINT64_C(1))) / 100;
        const double most = static_cast<double>(std::ranges::max(bins)) / all;
        const Axis y{0, std::max(most * 1.1, 0.001), top + HEIGHT, top, false};
        axes(x, y, "µs", "% of the operations, by latency");
        const double width = (x.end - x.begin) / BINS;
        for (size_t i = 0; i < BINS; i++)
            if (bins[i]) {
                const double height = y.at(static_cast<double>(bins[i]) / all);
                fmt::format_to(out(),
                               "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
                               "height=\"{:.1f}\" fill=\"{}\"/>\n",
                               x.begin + static_cast<double>(i) * width, height, width - 0.5,
                               y.begin - height, BLUE);
            }
        mark(x, y, result.us(0.5), "median", 10);
        mark(x, y, result.us(0.99), "p99", 23);
    }

    std::string svg_;
};

} // namespace

std::string plot(std::span<const Result> results) {
    Picture picture(results.size());
    for (size_t i = 0; i < results.size(); i++)
        picture.row(results[i], ROW_HEIGHT * static_cast<double>(i));
    return picture.end();
}
