// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// enumeration.cc -- --search exhaustive: all schedules with one choice, then with two ...

#include "enumeration.hh"

#include <algorithm>
#include <utility>

// Returns the next choice of a parent.
std::optional<Job> Enumeration::child() {
    for (; parent_ < parents_.size(); parent_++, point_ = 0, option_ = 0) {
        const Node &parent = parents_[parent_];
        for (; point_ < parent.points.size(); point_++, option_ = 0) {
            const sim::Point &point = parent.points[point_];
            if (option_ > point.last - point.first)
                continue;
            Job job = {++number_, parent.choices};
            job.choices.push_back({point.position, point.first + option_++});
            return job;
        }
    }
    return std::nullopt;
}

std::optional<Job> Enumeration::next() {
    std::optional<Job> job;
    if (!is_begun_) {
        is_begun_ = true;
        job = Job{++number_, {}};
    } else {
        job = child();
    }
    if (!job && running_.empty() && !is_complete_) { // the next level
        complete_level_ = level_;
        parents_.clear();
        for (auto &[number, node] : std::exchange(children_, {}))
            parents_.push_back(std::move(node));
        parent_ = point_ = option_ = 0;
        of_level_ = points_ = 0;
        is_complete_ = parents_.empty();
        if (!is_complete_) {
            level_++;
            job = child();
        }
    }
    if (job) {
        running_[job->number] = job->choices;
        of_level_++;
    }
    return job;
}

void Enumeration::completed(uint64_t number, const std::vector<sim::Point> &points,
                            bool has_finding) {
    Node node = {std::move(running_.extract(number).mapped()), points};
    if (!node.choices.empty()) {
        const auto after =
            std::ranges::find(node.points.rbegin(), node.points.rend(),
                              node.choices.back().position, &sim::Point::position)
                .base();
        node.points.erase(node.points.begin(),
                          after == node.points.begin() ? node.points.end() : after);
    }
    if (has_finding || node.points.empty())
        return;
    is_truncated_ |= node.choices.size() >= most_ || points_ > MAX_POINTS;
    if (is_truncated_)
        return;
    points_ += node.points.size();
    children_[number] = std::move(node);
}

std::string Enumeration::text() const {
    if (is_complete_ && !is_truncated_)
        return "exhaustive: all schedules were run\n";
    std::string text = "exhaustive: not all schedules were run";
    if (is_complete_ || complete_level_ != 0)
        text += ", but all with up to " + count_of(complete_level_, "choice");
    if (!is_complete_)
        text += ", and " + std::to_string(of_level_) + " with " + count_of(level_, "choice");
    return text + "\n";
}
