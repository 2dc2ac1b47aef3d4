// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// misuses.cc -- reads what programs with --strict have written (client/preload/strict.cc)

#include <cstdlib>
#include <fstream>
#include <unistd.h>

#include "sim.hh"

// A line has the file of the call, the offset in it, and a text. The last one may not be
// complete.
std::vector<std::string> Misuses::take() {
    std::vector<std::string> lines;
    std::vector<size_t> places;
    std::ifstream file(path_);
    file.seekg(read_);
    for (std::string line; std::getline(file, line) && !file.eof();) {
        read_ += static_cast<std::streamoff>(line.size()) + 1;
        const size_t offset = line.find('\t'), text = line.find('\t', offset + 1);
        if (text == line.npos)
            continue;
        lines.push_back(line.substr(text + 1));
        places.push_back(
            calls_.add(line.substr(0, offset), strtoull(&line[offset + 1], nullptr, 16)));
    }
    calls_.resolve(places);
    for (size_t i = 0; i < lines.size(); i++)
        lines[i] += " (" + calls_.at(places[i]) + ")";
    count_ += lines.size();
    return lines;
}

std::vector<std::string> Misuses::take_all(const std::string &directory) {
    Misuses misuses(directory);
    std::vector<std::string> lines = misuses.take();
    (void)unlink(misuses.path_.c_str());
    return lines;
}
