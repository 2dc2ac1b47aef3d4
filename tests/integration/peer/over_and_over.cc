// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// over_and_over.cc -- commands that post many times: while something breaks, while the other
// side follows, or while others do the same

#include "peer.hh"

#include <cstring>
#include <poll.h>

namespace {

// ---- until something breaks --------------------------------------------------------------

// The other side may be gone: an event reports that, and while the device keeps retrying, only
// a disconnected queue pair completes its outstanding operations.
void heed_event(rpma_conn *conn, bool is_last) {
    const rpma_conn_event event = get(rpma_conn_next_event, conn);
    reply("event", event == RPMA_CONN_CLOSED ? "CLOSED" : "another");
    must(rpma_conn_disconnect(conn));
    must_be(!is_last, ERR_CLOSED);
}

// Waits for a completion; if the other side leaves meanwhile, disconnects, and the answer says
// so. ERR_CLOSED: the event came, and the caller waits for nothing more.
ibv_wc await_either(rpma_conn *conn, bool event_is_last) {
    rpma_cq *cq = queue_of(conn);
    pollfd fds[] = {{.fd = get(rpma_cq_get_fd, cq), .events = POLLIN, .revents = 0},
                    {.fd = get(rpma_conn_get_event_fd, conn), .events = POLLIN, .revents = 0}};
    ibv_wc wc = {};
    int code;
    while ((code = rpma_cq_get_wc(cq, 1, &wc, nullptr)) == RPMA_E_NO_COMPLETION) {
        poll(fds, 2, -1);
        if ((fds[0].revents & POLLIN) == 0 && (fds[1].revents & POLLIN) != 0)
            heed_event(conn, event_is_last);
        else if ((code = rpma_cq_wait(cq)) != RPMA_E_NO_COMPLETION)
            must(code);
    }
    must(code);
    return wc;
}

// Writes count= blocks, each to its own place, with at most window= of them outstanding. With
// last=1 an event of the connection ends the load, because no completion need follow.
void write_blocks(const Args &args) {
    rpma_conn *conn = the<rpma_conn>(args);
    const uint64_t count = args.number("count"), window = args.number("window");
    const size_t len = args.number("len");
    const Clock clock;
    ibv_wc wc = {};
    uint64_t posted = 0, done = 0;
    const AtEnd told{[&] {
        reply("done", done);
        reply("ms", clock.ms());
        reply("status", int{wc.status});
    }};
    while (done < count) {
        if (posted < count && posted - done < window) {
            must(rpma_write(conn, the<rpma_mr_remote>(args), posted * len,
                            the<rpma_mr_local>(args), posted * len, len,
                            RPMA_F_COMPLETION_ALWAYS, context_of(posted)));
            posted++;
            continue;
        }
        wc = await_either(conn, args.is("last"));
        must_be(wc.status == IBV_WC_SUCCESS, RPMA_E_PROVIDER);
        must_be(wc.wr_id == done, ERR_MISMATCH);
        done++;
    }
}

// Posts a batch of signaled operations with the contexts 0, 1, …; the next round begins when
// this one has completed. Ends with the round in which an operation fails: each operation
// completes once, in order, and none succeeds behind one that failed.
void post_until_broken(const Args &args) {
    uint32_t posted = 0, good = 0, failed = 0;
    int code = 0, status = IBV_WC_SUCCESS; // of the first operation that failed
    while (code == 0 && failed == 0) {
        code = rpma_batch_post(the<rpma_batch>(args), &posted);
        for (good = 0; good + failed < posted;) {
            const ibv_wc wc = await_either(the<rpma_conn>(args), false);
            const bool worked = wc.status == IBV_WC_SUCCESS;
            must_be(wc.wr_id == good + failed && !(worked && failed != 0), ERR_MISMATCH);
            status = failed == 0 ? wc.status : status;
            ++(worked ? good : failed);
        }
    }
    reply("post", code == 0 ? "ok" : code_name(code));
    reply("posted", posted);
    reply("good", good);
    reply("failed", failed);
    reply("status", status);
}

// ---- versions of memory ------------------------------------------------------------------

// Performs step(version, pieces) for each version; the answer says how many there were.
void for_versions(const Args &args,
                  const std::function<void(uint64_t, const std::vector<piece> &)> &step) {
    uint64_t version = 0;
    const AtEnd told{[&] { reply("versions", version); }};
    for (; version < args.number("versions"); version++)
        step(version, the_pieces(args));
}

// Each piece of each version has a pattern of its own.
uint64_t seed_of(uint64_t version, size_t piece) {
    return version * MAX_ELEMENTS + piece;
}

// Posts the same batch for each version, with other bytes in the pieces each time; its last
// operation alone is signaled. The next version waits until the other side has checked this
// one, whose answer comes after that completion, or before it.
void publish(const Args &args) {
    rpma_cq *cq = the<rpma_cq>(args);
    for_versions(args, [&](uint64_t version, const std::vector<piece> &pieces) {
        for (size_t i = 0; i < pieces.size(); i++)
            pattern_fill(bytes_of(args, pieces[i]), seed_of(version, i));
        must(rpma_recv(the<rpma_conn>(args), the<rpma_mr_local>(args), args.number("off"), 8,
                       nullptr));
        must_be(get(rpma_batch_post, the<rpma_batch>(args)) == args.number("ops"),
                ERR_MISMATCH);
        await_completion(cq);
        await_completion(cq);
    });
}

// Waits for the other side's atomic write.
void await_flag(std::atomic_ref<uint64_t> flag, uint64_t wanted) {
    for (const Clock clock; flag.load(std::memory_order_acquire) != wanted;) {
        must_be(clock.ms() < 10 * PATIENCE_MS, ERR_TIMEOUT);
        std::this_thread::yield();
    }
}

// Checks each version as soon as the flag at off= of memory mr= announces it, resets the flag,
// and tells the other side so.
void follow(const Args &args) {
    const piece place = {args.below(MAX_REGIONS, "mr"), args.number("off"), sizeof(uint64_t)};
    std::atomic_ref flag(*reinterpret_cast<uint64_t *>(bytes_of(args, place).data()));
    uint64_t wanted = 0;
    memcpy(&wanted, args.bytes("bytes").data(), sizeof(wanted));
    for_versions(args, [&](uint64_t version, const std::vector<piece> &pieces) {
        await_flag(flag, wanted);
        for (size_t i = 0; i < pieces.size(); i++)
            pattern_check(bytes_of(args, pieces[i]), seed_of(version, i));
        flag.store(0);
        must(rpma_send(the<rpma_conn>(args), the<rpma_mr_local>(args), place.offset, place.len,
                       RPMA_F_COMPLETION_ALWAYS, nullptr));
        await_completion(the<rpma_cq>(args));
    });
}

// ---- with others -------------------------------------------------------------------------

// Posts batch n over and over, as one of several threads on one connection. Its operations use
// memory n: they write len= bytes, read them back to the second len= bytes, and send the
// message behind those; the last one is signaled, with the context n. Any thread polls for all.
void post_in_threads(const Args &args) {
    const size_t threads = args.below(MAX_OTHERS + 1, "threads"), len = args.number("len");
    const uint64_t rounds = args.number("rounds");
    uint64_t posted[MAX_OTHERS] = {};
    std::atomic<uint64_t> done[MAX_OTHERS] = {};
    rpma_cq *cq = the<rpma_cq>(args);
    const AtEnd told{[&] {
        for (size_t i = 0; i < threads; i++) {
            reply("posted" + std::to_string(i), posted[i]);
            reply("done" + std::to_string(i), done[i].load());
        }
    }};
    const auto poll_for_all = [&] {
        ibv_wc wc;
        const int code = rpma_cq_get_wc(cq, 1, &wc, nullptr);
        if (code == RPMA_E_NO_COMPLETION) {
            std::this_thread::yield();
            return;
        }
        must(code);
        must_be(wc.status == IBV_WC_SUCCESS && wc.wr_id < threads, RPMA_E_PROVIDER);
        done[wc.wr_id]++;
    };
    in_threads(threads, [&](size_t number, const std::atomic<bool> &has_failed) {
        const area memory = world.memory[number];
        for (; posted[number] < rounds && !has_failed; posted[number]++) {
            const uint64_t message[] = {number, posted[number]};
            pattern_fill(memory.first(len), number << 32 | posted[number]);
            memset(&memory[len], 0, len);
            memcpy(&memory[2 * len], message, sizeof(message));
            must(rpma_batch_post(world.batch[number], nullptr));
            while (done[number] <= posted[number] && !has_failed)
                poll_for_all();
            must_be(has_failed || memcmp(&memory[0], &memory[len], len) == 0, ERR_MISMATCH);
        }
    });
}

const Commands here{
    {"write-blocks", write_blocks},
    {"post-until-broken", post_until_broken},
    {"publish", publish},
    {"follow", follow},
    {"post-in-threads", post_in_threads},
};

} // namespace
