// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// choices_test.cc -- how a finding is shortened

#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>

extern "C" {
#include <cmocka.h>
}

#include "../../explore/choices.hh"

namespace {

std::vector<sim::Choice> numbered(uint32_t count) {
    std::vector<sim::Choice> choices;
    for (uint32_t i = 0; i < count; i++)
        choices.push_back({i, 1});
    return choices;
}

bool has(const std::vector<sim::Choice> &choices, uint32_t position) {
    return std::ranges::find(choices, position, &sim::Choice::position) != choices.end();
}

void many_choices_are_removed_with_fewer_tries_than_choices(void **) {
    const std::vector<sim::Choice> fewest =
        sim::shorten(numbered(400), 300, [](const std::vector<sim::Choice> &choices) {
            return has(choices, 17) && has(choices, 200) && has(choices, 399);
        });
    assert_int_equal(fewest.size(), 3);
}

// Aligned parts of two choices separate them.
void neighbours_in_different_parts_are_removed_together(void **) {
    const std::vector<sim::Choice> fewest =
        sim::shorten(numbered(4), 300, [](const std::vector<sim::Choice> &choices) {
            return has(choices, 0) && has(choices, 3) && has(choices, 1) == has(choices, 2);
        });
    assert_int_equal(fewest.size(), 2);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(many_choices_are_removed_with_fewer_tries_than_choices),
        cmocka_unit_test(neighbours_in_different_parts_are_removed_together),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
