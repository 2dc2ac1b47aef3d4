// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// data.cc -- commands for operations and receives: single ones, arrays and batches

#include "peer.hh"

#include <algorithm>
#include <cstring>
#include <deque>

namespace {

const std::map<std::string, rpma_work_type> kinds = {
    {"read", RPMA_WORK_READ},
    {"write", RPMA_WORK_WRITE},
    {"write-imm", RPMA_WORK_WRITE_WITH_IMM},
    {"atomic", RPMA_WORK_ATOMIC_WRITE},
    {"flush", RPMA_WORK_FLUSH},
    {"send", RPMA_WORK_SEND},
    {"send-until-full", RPMA_WORK_SEND},
    {"send-imm", RPMA_WORK_SEND_WITH_IMM},
    {"add", RPMA_WORK_FETCH_ADD},
    {"swap", RPMA_WORK_COMPARE_SWAP},
};

// An operation with its pieces.
struct Operation {
    rpma_work work;
    std::vector<rpma_sge> pieces;
};
std::vector<Operation> held; // that "post" will post

const void *context_of(uint64_t number) {
    return reinterpret_cast<const void *>(number);
}

// The piece mr=, off=, len=; its region is NULL if the command names none.
rpma_sge the_piece(const Args &args) {
    return {args.has("mr") ? the_mr(args) : nullptr, args.number_or("off", 0),
            args.number_or("len", 0)};
}

void copy_value(const Args &args, const char *key, uint64_t *value) {
    const std::vector<unsigned char> bytes = args.bytes(key);
    memcpy(value, bytes.data(), std::min(bytes.size(), sizeof(*value)));
}

// Sets members of other kinds as well: the library must not read them.
Operation the_operation(const Args &args) {
    Operation operation = {.work = {}, .pieces = the_list(args)};
    rpma_work &work = operation.work;
    work.type = kinds.at(args.verb());
    work.imm = static_cast<uint32_t>(args.number_or("imm", 0));
    work.remote = args.has("rmr") ? the_remote(args) : nullptr;
    work.remote_offset = args.number_or("roff", 0);
    work.local = the_piece(args);
    work.sgl = operation.pieces.empty() ? nullptr : operation.pieces.data();
    work.nsge = static_cast<uint32_t>(args.number_or("nsge", operation.pieces.size()));
    work.flush_type = work.type == RPMA_WORK_FLUSH && args.number("persistent") != 0
                          ? RPMA_FLUSH_TYPE_PERSISTENT
                          : RPMA_FLUSH_TYPE_VISIBILITY;
    work.flush_len = args.number_or("len", 0);
    work.flags = static_cast<int>(args.number_or("flags", RPMA_F_COMPLETION_ALWAYS));
    work.op_context = context_of(args.number_or("ctx", 0));
    copy_value(args, "bytes", &work.value);
    copy_value(args, "compare", &work.compare);
    return operation;
}

// The operation's own function, which every release has.
int call(rpma_conn *conn, const rpma_work &w) {
    auto *local = const_cast<rpma_mr_local *>(w.local.mr);
    auto *remote = const_cast<rpma_mr_remote *>(w.remote);
    const auto [mr, offset, len] = w.local;
    switch (w.type) {
    case RPMA_WORK_READ:
        return rpma_read(conn, local, offset, remote, w.remote_offset, len, w.flags,
                         w.op_context);
    case RPMA_WORK_WRITE:
        return rpma_write(conn, remote, w.remote_offset, local, offset, len, w.flags,
                          w.op_context);
    case RPMA_WORK_WRITE_WITH_IMM:
        return rpma_write_with_imm(conn, remote, w.remote_offset, local, offset, len, w.flags,
                                   w.imm, w.op_context);
    case RPMA_WORK_ATOMIC_WRITE:
        return rpma_atomic_write(conn, remote, w.remote_offset,
                                 reinterpret_cast<const char *>(&w.value), w.flags,
                                 w.op_context);
    case RPMA_WORK_FLUSH:
        return rpma_flush(conn, remote, w.remote_offset, w.flush_len, w.flush_type, w.flags,
                          w.op_context);
    case RPMA_WORK_SEND:
        return rpma_send(conn, local, offset, len, w.flags, w.op_context);
    case RPMA_WORK_SEND_WITH_IMM:
        return rpma_send_with_imm(conn, local, offset, len, w.flags, w.imm, w.op_context);
    default: // the others have none
        return rpma_post(conn, &w, 1, nullptr);
    }
}

// batch=: adds to the batch, or with index= replaces there. way=hold: keeps for "post".
// way=post, or with pieces: rpma_post().
void perform(const Args &args) {
    Operation operation = the_operation(args);
    const rpma_work &work = operation.work;
    const std::string way = args.text_or("way", "");
    if (way == "hold")
        held.push_back(std::move(operation));
    else if (args.has("index"))
        must(rpma_batch_set(the_batch(args), static_cast<uint32_t>(args.number("index")),
                            &work));
    else if (args.has("batch"))
        must(rpma_batch_add(the_batch(args), &work));
    else if (way == "post" || work.sgl != nullptr || work.nsge != 0)
        must(rpma_post(the_conn(args), &work, 1, nullptr));
    else
        must(call(the_conn(args), work));
}

// Posts the held operations and keeps those that the device did not take; forget=1 only drops
// all held operations.
void post(const Args &args) {
    std::vector<rpma_work> works;
    uint32_t posted = UINT32_MAX;
    if (args.is("forget")) {
        held.clear();
        return;
    }
    for (const Operation &operation : held)
        works.push_back(operation.work);
    const int code =
        rpma_post(the_conn(args), works.data(), static_cast<uint32_t>(works.size()), &posted);
    reply("posted", posted);
    if (posted <= held.size())
        held.erase(held.begin(), held.begin() + posted);
    must(code);
}

// count=: so many receives, in adjacent memory and with consecutive contexts. way=many, or with
// pieces: one call for all, and the answer says how many the queue took.
template <class One, class Many> void receive(const Args &args, One one, Many many) {
    const std::vector<rpma_sge> pieces = the_list(args);
    std::vector<rpma_receive> receives(args.number_or("count", 1));
    rpma_sge piece = the_piece(args);
    uint64_t context = args.number_or("ctx", 0);
    for (rpma_receive &next : receives) {
        next.local = piece;
        next.sgl = pieces.empty() ? nullptr : pieces.data();
        next.nsge = static_cast<uint32_t>(args.number_or("nsge", pieces.size()));
        next.op_context = context_of(context++);
        piece.offset += piece.len;
    }
    if (args.text_or("way", "") == "many" || !pieces.empty() || args.has("nsge")) {
        uint32_t posted = UINT32_MAX;
        const int code = many(receives.data(), static_cast<uint32_t>(receives.size()), &posted);
        reply("posted", posted);
        must(code);
        return;
    }
    for (const rpma_receive &next : receives)
        must(one(const_cast<rpma_mr_local *>(next.local.mr), next.local.offset, next.local.len,
                 next.op_context));
}

// The functions of librpma for one kind of queue, with the queue as their first argument.
template <class Queue>
void receive_in(const Args &args, Queue *queue,
                int one(Queue *, rpma_mr_local *, size_t, size_t, const void *),
                int many(Queue *, const rpma_receive *, uint32_t, uint32_t *)) {
    receive(args, std::bind_front(one, queue), std::bind_front(many, queue));
}

// Posts the same message until the queue refuses it; the answer says how many it took.
void send_until_full(const Args &args) {
    Operation operation = the_operation(args);
    rpma_work &work = operation.work;
    uint64_t posted = 0;
    const AtEnd told{[&] { reply("posted", posted); }};
    while (posted < args.number("limit")) {
        work.op_context = context_of(posted + 1);
        must(args.text_or("way", "") == "post" ? rpma_post(the_conn(args), &work, 1, nullptr)
                                               : call(the_conn(args), work));
        posted++;
    }
}

const Commands here{
    {"read", perform},
    {"write", perform},
    {"write-imm", perform},
    {"atomic", perform},
    {"flush", perform},
    {"send", perform},
    {"send-imm", perform},
    {"add", perform},
    {"swap", perform},
    {"post", post},
    {"recv",
     [](const Args &args) { receive_in(args, the_conn(args), rpma_recv, rpma_recv_many); }},
    {"req-recv",
     [](const Args &args) {
         receive_in(args, the_request(args), rpma_conn_req_recv, rpma_conn_req_recv_many);
     }},
    {"srq-recv",
     [](const Args &args) {
         receive_in(args, the_srq(args), rpma_srq_recv, rpma_srq_recv_many);
     }},
    {"send-until-full", send_until_full},
};

size_t next_number(const Args &args, const char **text, char end) {
    char *rest = nullptr;
    const size_t number = strtoull(*text, &rest, 0);
    if (rest == *text || (*rest != end && *rest != '\0'))
        bad_script(args.verb() + ": sgl= is no list of memory:offset:length");
    *text = *rest == end ? rest + 1 : rest;
    return number;
}

} // namespace

std::vector<piece> the_pieces(const Args &args) {
    const std::string list = args.text_or("sgl", "");
    std::vector<piece> pieces;
    for (const char *text = list.c_str(); *text != '\0';) {
        piece piece = {};
        if (strncmp(text, "-:", 2) == 0) {
            piece.memory = MAX_REGIONS;
            text += 2;
        } else {
            piece.memory = next_number(args, &text, ':');
        }
        piece.offset = next_number(args, &text, ':');
        piece.len = next_number(args, &text, ',');
        if (piece.memory > MAX_REGIONS)
            bad_script(args.verb() + ": no such memory in sgl=");
        pieces.push_back(piece);
    }
    return pieces;
}

std::vector<rpma_sge> the_list(const Args &args) {
    std::vector<rpma_sge> elements;
    for (const piece &piece : the_pieces(args))
        elements.push_back({piece.memory < MAX_REGIONS ? world.mr[piece.memory] : nullptr,
                            piece.offset, piece.len});
    return elements;
}
