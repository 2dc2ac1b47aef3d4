// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// perf.c -- tests the parts of rpma-perf that need no RDMA: histogram, pattern, and messages

#include "histogram.h"
#include "message.h"
#include "pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define VALUES 20011 // no multiple of 100, so that percentiles are no whole numbers

static uint64_t random_state = 42;

static uint64_t next_random(void) {
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return random_state >> 11;
}

static int by_size(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

// Values of all magnitudes up to 2^bits, sorted, and in the histogram.
static uint64_t *make_values(struct histogram *histogram, unsigned bits) {
    uint64_t *values = calloc(VALUES, sizeof(*values));
    assert_non_null(values);
    for (size_t i = 0; i < VALUES; i++) {
        values[i] = next_random() & ((UINT64_C(1) << (1 + next_random() % bits)) - 1);
        histogram_add(histogram, values[i]);
    }
    qsort(values, VALUES, sizeof(*values), by_size);
    return values;
}

// By definition: the least value that this part of all values does not exceed.
static uint64_t exact(const uint64_t *values, double part) {
    size_t rank = 0;
    while ((double)(rank + 1) < part * VALUES)
        rank++;
    return values[rank];
}

static void expect_near(uint64_t found, uint64_t wanted) {
    assert_true(found >= wanted);
    assert_true(found <= wanted + wanted / 256);
}

static void percentiles(void **state) {
    static const double parts[] = {0.0001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1};
    struct histogram *histogram = test_calloc(1, sizeof(*histogram));
    (void)state;
    for (unsigned bits = 4; bits <= 43; bits += 3) {
        histogram_reset(histogram);
        uint64_t *values = make_values(histogram, bits);
        for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
            expect_near(histogram_at(histogram, parts[i]), exact(values, parts[i]));
        assert_int_equal(histogram->min, values[0]);
        assert_int_equal(histogram->max, values[VALUES - 1]);
        assert_int_equal(histogram_at(histogram, 1), values[VALUES - 1]);
        free(values);
    }
    test_free(histogram);
}

static void small_values_are_exact(void **state) {
    struct histogram *histogram = test_calloc(1, sizeof(*histogram));
    (void)state;
    for (uint64_t value = 0; value < 512; value++) {
        histogram_reset(histogram);
        histogram_add(histogram, value);
        histogram_add(histogram, 100000);
        assert_int_equal(histogram_at(histogram, 0.5), value);
    }
    test_free(histogram);
}

// Each value is found in its own bucket, neither below it nor too far above.
static void edges_of_buckets(void **state) {
    struct histogram *histogram = test_calloc(1, sizeof(*histogram));
    (void)state;
    for (unsigned bit = 0; bit < HISTOGRAM_MAX_BITS; bit++)
        for (int step = -1; step <= 1; step++) {
            uint64_t value = (UINT64_C(1) << bit) + (uint64_t)step;
            if (value >= UINT64_C(1) << HISTOGRAM_MAX_BITS)
                continue;
            histogram_reset(histogram);
            histogram_add(histogram, value);
            histogram_add(histogram, UINT64_MAX); // so that the maximum bounds nothing
            expect_near(histogram_at(histogram, 0.5), value);
        }
    assert_int_equal(histogram->max, UINT64_MAX);
    test_free(histogram);
}

static void merging(void **state) {
    struct histogram *all = test_calloc(3, sizeof(*all));
    (void)state;
    for (int i = 0; i < 3; i++)
        histogram_reset(&all[i]);
    for (int i = 0; i < VALUES; i++) {
        uint64_t value = next_random() % 1000000;
        histogram_add(&all[0], value);
        histogram_add(&all[1 + i % 2], value);
    }
    histogram_merge(&all[1], &all[2]);
    assert_memory_equal(&all[0], &all[1], sizeof(*all));
    assert_true(histogram_mean(&all[0]) > 490000 && histogram_mean(&all[0]) < 510000);
    test_free(all);
}

static void nothing_in_it(void **state) {
    struct histogram *histogram = test_calloc(1, sizeof(*histogram));
    (void)state;
    histogram_reset(histogram);
    assert_int_equal(histogram_at(histogram, 0.5), 0);
    assert_int_equal(histogram_at(histogram, 1), 0);
    assert_true(histogram_mean(histogram) == 0);
    test_free(histogram);
}

// ---- pattern -------------------------------------------------------------------------------

#define PATTERN_SIZE 131

static void every_byte_counts(void **state) {
    unsigned char data[PATTERN_SIZE];
    (void)state;
    pattern_fill(data, sizeof(data), 3, 70);
    assert_int_equal(pattern_check(data, sizeof(data), 3, 70), sizeof(data));
    for (size_t i = 0; i < sizeof(data); i++)
        for (unsigned bit = 0; bit < 8; bit++) {
            data[i] ^= (unsigned char)(1u << bit);
            assert_int_equal(pattern_check(data, sizeof(data), 3, 70), i);
            data[i] ^= (unsigned char)(1u << bit);
        }
}

static void operations_differ(void **state) {
    unsigned char data[PATTERN_SIZE];
    (void)state;
    pattern_fill(data, sizeof(data), 3, 70);
    assert_true(pattern_check(data, sizeof(data), 3, 71) < 4);
    assert_true(pattern_check(data, sizeof(data), 4, 70) < 4);
    memmove(data, data + 8, sizeof(data) - 8); // the same words at other places
    assert_true(pattern_check(data, sizeof(data), 3, 70) < 4);
}

static void a_pattern_keeps_its_size(void **state) {
    unsigned char data[PATTERN_SIZE];
    (void)state;
    for (size_t size = 0; size < 20; size++) {
        memset(data, 0, sizeof(data));
        pattern_fill(data, size, 0, 0);
        assert_int_equal(zero_check(data + size, sizeof(data) - size), sizeof(data) - size);
        data[size] = 1;
        assert_int_equal(zero_check(data + size, sizeof(data) - size), 0);
    }
}

// ---- messages ------------------------------------------------------------------------------

static struct message *received(const char *text) {
    static struct message message;
    message.length = strlen(text);
    memcpy(message.text, text, message.length);
    return &message;
}

static void a_message_comes_back(void **state) {
    const unsigned char sent[] = {0x00, 0x7f, 0x80, 0xff};
    static struct message message;
    unsigned char bytes[8];
    size_t size = sizeof(bytes);
    uint64_t value;
    char text[8];
    (void)state;
    message_begin(&message, "ready");
    message_add_number(&message, "number", UINT64_MAX);
    message_add(&message, "text", "a = b");
    message_add_bytes(&message, "bytes", sent, sizeof(sent));
    assert_true(message_is_valid(&message));
    assert_true(message_is(&message, "ready"));
    assert_false(message_is(&message, "read"));
    assert_true(message_get_number(&message, "number", 0, UINT64_MAX, &value));
    assert_true(value == UINT64_MAX);
    assert_true(message_get(&message, "text", text, sizeof(text)));
    assert_string_equal(text, "a = b");
    assert_true(message_get_bytes(&message, "bytes", bytes, &size));
    assert_int_equal(size, sizeof(sent));
    assert_memory_equal(bytes, sent, sizeof(sent));
}

static void what_is_no_message(void **state) {
    static const char *const texts[] = {"", "plan", "plan\nsize=1", "pl\001an\n", "pl\377an\n"};
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_false(message_is_valid(received(texts[i])));
    struct message *longer = received("plan\n");
    longer->length = MESSAGE_SIZE + 1;
    assert_false(message_is_valid(longer));
}

static void numbers_that_are_none(void **state) {
    static const char *const texts[] = {"p\nn=\n",
                                        "p\nn=-1\n",
                                        "p\nn= 1\n",
                                        "p\nn=1x\n",
                                        "p\nn=18446744073709551616\n",
                                        "p\nm=1\n",
                                        "p\nn=0\n",
                                        "p\nn=10\n",
                                        "p\nn\n",
                                        "p\nn=000000000000000000000000000001\n"};
    uint64_t value = 77;
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_false(message_get_number(received(texts[i]), "n", 1, 9, &value));
    assert_int_equal(value, 77);
    assert_true(message_get_number(received("p\nnn=3\nn=9\n"), "n", 1, 9, &value));
    assert_int_equal(value, 9);
}

static void bytes_that_are_none(void **state) {
    static const char *const texts[] = {"p\nb=0\n", "p\nb=0g\n", "p\nb=0011223344\n",
                                        "p\nc=00\n"};
    unsigned char bytes[4];
    char text[4];
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        size_t size = sizeof(bytes);
        assert_false(message_get_bytes(received(texts[i]), "b", bytes, &size));
    }
    assert_false(message_get(received("p\nt=four\n"), "t", text, sizeof(text)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentiles),           cmocka_unit_test(small_values_are_exact),
        cmocka_unit_test(edges_of_buckets),      cmocka_unit_test(merging),
        cmocka_unit_test(nothing_in_it),         cmocka_unit_test(every_byte_counts),
        cmocka_unit_test(operations_differ),     cmocka_unit_test(a_pattern_keeps_its_size),
        cmocka_unit_test(a_message_comes_back),  cmocka_unit_test(what_is_no_message),
        cmocka_unit_test(numbers_that_are_none), cmocka_unit_test(bytes_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
