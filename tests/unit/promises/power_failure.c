// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// power_failure.c -- the bytes that a target still has after a power failure: those flushed
// behind a write, in the range and on the connection of the flush, and no others

#include "target.h"

#include <stdlib.h>

enum { PAGE = 4096 };

// An end of a range, in bytes from where the write or its region begins or ends.
enum anchor { AT, PAST, BOTTOM, TOP };
struct edge {
    enum anchor anchor;
    int bytes;
};

static const struct flush_case {
    const char *name;
    struct edge from, to;
    bool is_first, on_other_conn, of_other_region, for_visibility;
} flush_cases[] = {
    {"what was written", {AT, 0}, {PAST, 0}},
    {"the first byte of it", {AT, 0}, {AT, 1}},
    {"the last byte of it", {PAST, -1}, {PAST, 0}},
    {"all but the last word", {AT, 0}, {PAST, -WORD}},
    {"all but the first word", {AT, WORD}, {PAST, 0}},
    {"a byte in its midst", {AT, 65}, {AT, 66}},
    {"what is before it", {BOTTOM, 0}, {AT, 0}},
    {"what is behind it", {PAST, 0}, {TOP, 0}},
    {"all of the region", {BOTTOM, 0}, {TOP, 0}},
    {"nothing", {AT, 0}, {AT, 0}},
    {"it before it is written", {AT, 0}, {PAST, 0}, .is_first = true},
    {"it on another connection", {AT, 0}, {PAST, 0}, .on_other_conn = true},
    {"its place in another region", {AT, 0}, {PAST, 0}, .of_other_region = true},
    {"it for visibility", {AT, 0}, {PAST, 0}, .for_visibility = true},
};

static const size_t lengths[] = {0, 1, 7, 8, 9, PAGE};
static const struct {
    enum rpma_work_type type;
    bool has_list;
} kinds[] = {{RPMA_WORK_WRITE, false},          {RPMA_WORK_WRITE, true},
             {RPMA_WORK_WRITE_WITH_IMM, false}, {RPMA_WORK_WRITE_WITH_IMM, true},
             {RPMA_WORK_ATOMIC_WRITE, false},   {RPMA_WORK_FETCH_ADD, false},
             {RPMA_WORK_COMPARE_SWAP, false}};

struct write_case {
    enum rpma_work_type kind;
    bool has_list;
    int region;
    size_t offset, len;
    bool is_inline;
};

static long place(struct edge edge, const struct write_case *c) {
    const long places[] = {[AT] = (long)c->offset,
                           [PAST] = (long)(c->offset + c->len),
                           [BOTTOM] = 0,
                           [TOP] = TARGET_SIZE};
    return places[edge.anchor] + edge.bytes;
}

static unsigned char data[PAGE]; // what the write carries

static bool is_remote_atomic(enum rpma_work_type kind) {
    return kind == RPMA_WORK_FETCH_ADD || kind == RPMA_WORK_COMPARE_SWAP;
}

// A write of elements in different places, the second one empty; data becomes their bytes.
static struct rpma_work written(const struct write_case *c) {
    static struct rpma_sge sgl[4];
    const size_t lens[] = {c->len / 3, 0, c->len / 2, c->len - c->len / 3 - c->len / 2};
    const size_t offsets[] = {5, 0, 1000, 40};
    struct rpma_work o = target_write(0, c->region, c->offset, c->len);
    if (c->len == PAGE)
        o.local.offset = 0;
    if (c->is_inline)
        o.flags |= RPMA_F_INLINE;
    memcpy(data, target_worlds[0].memory + o.local.offset, c->len);
    memcpy(&o.value, data, sizeof(o.value));
    o.type = c->kind;
    o.imm = 0x12345678;
    // What was there is 0, to which the value is added, or with which it is compared.
    if (is_remote_atomic(c->kind))
        o.local = (struct rpma_sge){target_worlds[0].h.mr, PAGE - WORD, WORD};
    if (!c->has_list)
        return o;
    o.sgl = sgl;
    o.nsge = LENGTH(sgl);
    for (size_t i = 0, at = 0; i < LENGTH(sgl); at += lens[i++]) {
        sgl[i] = (struct rpma_sge){target_worlds[0].h.mr, offsets[i], lens[i]};
        memcpy(data + at, target_worlds[0].memory + offsets[i], lens[i]);
    }
    return o;
}

static uint64_t word_of(int region, long offset) {
    return (target_regions[region].addr + (uint64_t)offset) / WORD;
}

static const char *const way_texts[] = {", by itself", ", in an array", ", in a batch"};

static void expect_found(const char *what, const struct write_case *c, enum target_way way) {
    for (int r = 0; r < TARGET_REGIONS; r++)
        if (memcmp(target_found[r], target_expected[r], TARGET_SIZE) != 0)
            fail_msg(
                "%s of %zu bytes at %zu of region %d%s%s, then a flush of %s: region %d is "
                "found with other bytes than those that were flushed",
                operation_plain_name(c->kind), c->len, c->offset, c->region,
                c->is_inline ? ", inline" : "", way_texts[way], what, r);
}

// Lets each subset of the words that were not flushed survive, if these are few; otherwise
// none, every second one and all of them.
static void expect_survivors(const struct flush_case *f, const struct write_case *c,
                             enum target_way way, const bool *flushed) {
    static const uint64_t some[] = {0, 0x5555555555555555, UINT64_MAX};
    const size_t lost = fake_power_failure(0);
    const bool few = lost <= 3;
    for (size_t i = 0; i < (few ? (size_t)1 << lost : LENGTH(some)); i++) {
        const uint64_t survivors = few ? i : some[i];
        size_t nth = 0; // number of the lost word
        for (size_t at = 0; at < c->len; at++) {
            const long offset = (long)(c->offset + at);
            const bool survives = flushed[at] || survivors >> nth % 64 & 1;
            target_expected[c->region][offset] = survives ? data[at] : 0;
            nth += !flushed[at] && word_of(c->region, offset + 1) != word_of(c->region, offset);
        }
        assert_int_equal(fake_power_failure(survivors), lost);
        expect_found(f->name, c, way);
    }
}

// An emulated flush names where it begins, not where it ends: see read_bytes() of the fake.
static void try_flush(const struct flush_case *f, const struct write_case *c, bool native,
                      enum target_way way) {
    static bool flushed[PAGE];
    const long from = place(f->from, c), to = place(f->to, c);
    const bool is_native = native && BUILD_FLUSHES;
    if (from < 0 || from >= TARGET_SIZE || from > to || (f->for_visibility && !is_native))
        return;
    target_erase();
    const struct step w = {written(c), 0};
    struct step s = {
        target_flush(f->of_other_region ? !c->region : c->region, (size_t)from, (size_t)to),
        f->on_other_conn};
    if (f->for_visibility)
        s.o.flush_type = RPMA_FLUSH_TYPE_VISIBILITY;
    const struct step steps[] = {f->is_first ? s : w, f->is_first ? w : s};
    target_run(steps, LENGTH(steps), way);
    const bool counts =
        !f->is_first && !f->on_other_conn && !f->of_other_region && !f->for_visibility;
    const long past = is_native ? to : TARGET_SIZE;
    for (size_t at = 0; at < c->len; at++) {
        const uint64_t word = word_of(c->region, (long)(c->offset + at));
        flushed[at] = counts && from < past && word >= word_of(c->region, from) &&
                      word <= word_of(c->region, past - 1);
    }
    expect_survivors(f, c, way, flushed);
}

static bool is_possible(const struct write_case *c) {
    if (c->kind == RPMA_WORK_ATOMIC_WRITE)
        return c->len == 8 && c->offset % 8 == 0 && !c->is_inline;
    if (is_remote_atomic(c->kind))
        return c->len == 8 && (target_regions[c->region].addr + c->offset) % 8 == 0 &&
               !c->is_inline;
    return !c->is_inline || c->len < PAGE;
}

static void try_writes(bool native, enum target_way way) {
    target_begin(native);
    for (size_t i = 0; i < LENGTH(kinds) * TARGET_REGIONS * LENGTH(lengths) * 4 * 2; i++) {
        const size_t kind = i / 2 / 4 / LENGTH(lengths) / TARGET_REGIONS;
        struct write_case c = {.kind = kinds[kind].type,
                               .has_list = kinds[kind].has_list,
                               .region = (int)(i / 2 / 4 / LENGTH(lengths) % TARGET_REGIONS),
                               .len = lengths[i / 2 / 4 % LENGTH(lengths)],
                               .is_inline = i % 2};
        c.offset = (const size_t[]){0, 3, 24, TARGET_SIZE - c.len}[i / 2 % 4];
        for (size_t f = 0; f < LENGTH(flush_cases) && is_possible(&c); f++)
            try_flush(&flush_cases[f], &c, native, way);
    }
    target_end();
}

TEST_THAT(what_was_flushed_survives) {
    for (int native = 0; native <= (BUILD_FLUSHES || BUILD_WRITES_ATOMICALLY); native++)
        for (enum target_way way = 0; way < TARGET_WAYS; way++)
            try_writes(native, way);
}
