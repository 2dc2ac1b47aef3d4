// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// batch.cc -- commands for the life of a batch; for a prepared one that publishes versions of
// memory to the other side, which checks each; and for batches that are posted over and over

#include "peer.hh"

#include <atomic>
#include <cstring>

namespace {

rpma_batch *&batch_of(const Args &args) {
    return world.batch[args.slot("batch", MAX_OTHERS)];
}

// The answer says how many operations the device took, even if the post failed.
void post(const Args &args) {
    uint32_t posted = UINT32_MAX;
    const int code = rpma_batch_post(the_batch(args), &posted);
    reply("posted", posted);
    must(code);
}

void size(const Args &args) {
    uint32_t size = UINT32_MAX, room = UINT32_MAX;
    must(rpma_batch_get_size(the_batch(args), &size, &room));
    reply("size", size);
    reply("room", room);
}

// ---- versions of memory ------------------------------------------------------------------

// Each piece of each version has a pattern of its own.
uint64_t seed_of(uint64_t version, size_t piece) {
    return version * MAX_ELEMENTS + piece;
}

char *address_of(const Args &args, const piece &piece) {
    if (piece.memory >= MAX_REGIONS || world.memory[piece.memory].base == nullptr ||
        piece.offset + piece.len > world.memory[piece.memory].size)
        bad_script(args.verb() + ": outside the memory");
    return world.memory[piece.memory].base + piece.offset;
}

// Posts the batch, whose last operation alone is signaled. The other side's answer arrives
// after that completion, or before it. No other operations are outstanding.
void post_version(const Args &args, rpma_cq *cq) {
    uint32_t posted = 0;
    ibv_wc wc;
    must(rpma_recv(the_conn(args), the_mr(args), args.number("off"), 8, nullptr));
    must(rpma_batch_post(the_batch(args), &posted));
    must_be(posted == args.number("ops"), ERR_MISMATCH);
    await_completion(cq, &wc);
    await_completion(cq, &wc);
}

// Posts the same batch for each version, with other bytes in the pieces each time; the next
// version waits until the other side has checked this one.
void publish(const Args &args) {
    const std::vector<piece> pieces = the_pieces(args);
    uint64_t version = 0;
    const AtEnd told{[&] { reply("versions", version); }};
    for (; version < args.number("versions"); version++) {
        for (size_t i = 0; i < pieces.size(); i++)
            pattern_fill(address_of(args, pieces[i]), pieces[i].len, seed_of(version, i));
        post_version(args, queue_of(the_conn(args)));
    }
}

// Waits for the other side's atomic write.
void await_flag(std::atomic_ref<uint64_t> flag, uint64_t wanted) {
    const int64_t deadline = now_ms() + 600000;
    while (flag.load(std::memory_order_acquire) != wanted) {
        if (now_ms() > deadline) {
            reply("flag", flag.load());
            throw Failed{ERR_TIMEOUT};
        }
        std::this_thread::yield();
    }
}

void check_version(const Args &args, const std::vector<piece> &pieces, uint64_t version) {
    for (size_t i = 0; i < pieces.size(); i++) {
        const char *bytes = address_of(args, pieces[i]);
        const size_t equal = pattern_check(bytes, pieces[i].len, seed_of(version, i));
        if (equal == pieces[i].len)
            continue;
        reply("piece", i);
        reply("at", equal);
        reply("byte", unsigned{static_cast<unsigned char>(bytes[equal])});
        throw Failed{ERR_MISMATCH};
    }
}

// Checks each version as soon as the flag at off= of memory mr= announces it, resets the flag,
// and tells the other side so.
void follow(const Args &args) {
    const std::vector<piece> pieces = the_pieces(args);
    const piece place = {args.slot("mr", MAX_REGIONS), args.number("off"), sizeof(uint64_t)};
    std::atomic_ref flag(*reinterpret_cast<uint64_t *>(address_of(args, place)));
    uint64_t wanted = 0, version = 0;
    ibv_wc wc;
    memcpy(&wanted, args.bytes("bytes").data(), sizeof(wanted));
    const AtEnd told{[&] { reply("versions", version); }};
    for (; version < args.number("versions"); version++) {
        await_flag(flag, wanted);
        check_version(args, pieces, version);
        flag.store(0);
        must(rpma_send(the_conn(args), the_mr(args), place.offset, place.len,
                       RPMA_F_COMPLETION_ALWAYS, nullptr));
        await_completion(queue_of(the_conn(args)), &wc);
    }
}

// ---- over and over -----------------------------------------------------------------------

// The completions of one post.
struct Outcome {
    uint32_t good = 0, failed = 0;
    int status = IBV_WC_SUCCESS; // of the first operation that failed
};

// Each of the posted operations completes once, in order; after a failure all fail.
Outcome collect(rpma_conn *conn, uint32_t posted) {
    Outcome outcome;
    for (uint32_t i = 0; i < posted; i++) {
        ibv_wc wc = {};
        const bool worked = await_either(conn, queue_of(conn), &wc, false);
        if (wc.wr_id != i || (worked && outcome.failed != 0)) {
            reply("operation", wc.wr_id);
            reply("instead", i);
            reply("status", int{wc.status});
            throw Failed{ERR_MISMATCH};
        }
        outcome.good += worked;
        if (!worked && outcome.failed++ == 0)
            outcome.status = wc.status;
    }
    return outcome;
}

// Posts a batch of signaled operations with the contexts 0, 1, …; the next round begins when
// this one has completed. Ends with the round in which an operation fails.
void post_until_broken(const Args &args) {
    Outcome outcome;
    uint64_t rounds = 0;
    uint32_t posted = 0;
    int code = 0;
    while (code == 0 && outcome.failed == 0) {
        code = rpma_batch_post(the_batch(args), &posted);
        outcome = collect(the_conn(args), posted);
        rounds++;
    }
    reply("rounds", rounds);
    reply("post", code == 0 ? "ok" : code_name(code));
    reply("posted", posted);
    reply("good", outcome.good);
    reply("failed", outcome.failed);
    reply("status", outcome.status);
}

// One of several threads on one connection. The script filled its batch; the operations use the
// memory with the thread's number: they write len bytes, read them back to the second len
// bytes, and send the message behind those. The last operation is signaled, with the thread's
// number.
struct Poster {
    uint64_t posted = 0;
    std::atomic<uint64_t> done = 0; // any thread polls for all
};

struct Shared {
    rpma_cq *cq;
    size_t len;
    uint64_t rounds;
    Poster posters[MAX_OTHERS] = {};
    std::atomic<bool> has_failed = false;
};

void poll_for_all(Shared &shared) {
    ibv_wc wc;
    const int code = rpma_cq_get_wc(shared.cq, 1, &wc, nullptr);
    if (code == RPMA_E_NO_COMPLETION) {
        std::this_thread::yield();
        return;
    }
    must(code);
    must_be(wc.status == IBV_WC_SUCCESS && wc.wr_id < MAX_OTHERS, RPMA_E_PROVIDER);
    shared.posters[wc.wr_id].done++;
}

void post_round(Shared &shared, size_t number, uint64_t round) {
    char *base = world.memory[number].base;
    const uint64_t message[] = {number, round};
    pattern_fill(base, shared.len, number << 32 | round);
    memset(base + shared.len, 0, shared.len);
    memcpy(base + 2 * shared.len, message, sizeof(message));
    must(rpma_batch_post(world.batch[number], nullptr));
    while (shared.posters[number].done <= round && !shared.has_failed)
        poll_for_all(shared);
    must_be(memcmp(base, base + shared.len, shared.len) == 0, ERR_MISMATCH);
}

void post_rounds(Shared &shared, size_t number) {
    uint64_t &posted = shared.posters[number].posted;
    try {
        for (; posted < shared.rounds && !shared.has_failed; posted++)
            post_round(shared, number, posted);
    } catch (const Failed &) {
        shared.has_failed = true;
        throw;
    }
}

// Thread n uses batch, memory and context n.
void post_in_threads(const Args &args) {
    const size_t threads = args.slot("threads", MAX_OTHERS + 1);
    Shared shared = {.cq = queue_of(the_conn(args)),
                     .len = args.number("len"),
                     .rounds = args.number("rounds")};
    const AtEnd told{[&] {
        for (size_t i = 0; i < threads; i++) {
            reply("posted" + std::to_string(i), shared.posters[i].posted);
            reply("done" + std::to_string(i), shared.posters[i].done.load());
        }
    }};
    in_threads(threads, [&](size_t number) { post_rounds(shared, number); });
}

const Commands here{
    {"batch-new",
     [](const Args &args) {
         must(rpma_batch_new(the_conn(args), static_cast<uint32_t>(args.number("ops")),
                             &batch_of(args)));
     }},
    {"batch-post", post},
    {"batch-size", size},
    {"batch-reset", [](const Args &args) { must(rpma_batch_reset(the_batch(args))); }},
    {"batch-delete", [](const Args &args) { must(rpma_batch_delete(&batch_of(args))); }},
    {"publish", publish},
    {"follow", follow},
    {"post-until-broken", post_until_broken},
    {"post-in-threads", post_in_threads},
};

} // namespace

rpma_batch *the_batch(const Args &args) {
    if (batch_of(args) == nullptr)
        bad_script(args.verb() + ": no such batch");
    return batch_of(args);
}
