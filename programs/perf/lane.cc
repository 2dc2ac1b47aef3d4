// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// lane.cc -- one connection of the client's load: places, data, and posting

#include "lane.hh"

#include "pattern.hh"
#include "recording.hh"

static constexpr size_t ELEMENT_GAP = 64; // bytes between the elements of a memory list
static constexpr size_t CREDIT_SIZE = 8;
static constexpr uint64_t CREDIT_RECEIVES = 4; // the server has at most two outstanding credits

static size_t place_size(const Plan &plan) {
    return plan.stride() + (plan.elements > 1 ? aligned(plan.elements * ELEMENT_GAP) : 0);
}

static uint64_t receives_of(const Plan &plan) {
    return plan.op().is_echoed ? plan.depth : CREDIT_RECEIVES;
}

// One more place is scratch, to put together the elements of a memory list.
size_t lane_memory_size(const Plan &plan) {
    const size_t receives = plan.op().is_message ? receives_of(plan) * plan.stride() : 0;
    return plan.depth * place_size(plan) + receives + plan.stride();
}

size_t target_before_lanes(const Plan &plan) {
    return plan.both ? plan.target_size() : 0;
}

static uint32_t works_of_each(const Plan &plan) {
    return plan.op().flush == NO_FLUSH ? 1 : 2;
}

Queues lane_queues(const Plan &plan) {
    if (plan.op().is_message)
        return {plan.sends(), receives_of(plan)};
    return {plan.depth * works_of_each(plan) + 1, 1};
}

// ---- data ----------------------------------------------------------------------------------

// An element of the list of a place: the piece of the lane's memory that it has.
static rpma_sge element_of(const Lane &lane, uint64_t place, uint64_t element) {
    const Plan &plan = lane.crew->plan;
    const size_t each = plan.size / plan.elements;
    return {lane.crew->mr,
            lane.base + place * place_size(plan) + element * (each + ELEMENT_GAP),
            element + 1 < plan.elements ? each : plan.size - each * element};
}

static size_t scratch_place(const Lane &lane) {
    return lane.base + lane_memory_size(lane.crew->plan) - lane.crew->plan.stride();
}

static std::span<char> scratch_of(const Lane &lane) {
    return lane.crew->memory.subspan(scratch_place(lane), lane.crew->plan.size);
}

// Copies between the elements of a place and the scratch.
static void gather(const Lane &lane, uint64_t place, bool to_elements) {
    char *piece = scratch_of(lane).data();
    for (uint64_t i = 0; i < lane.crew->plan.elements; i++) {
        const rpma_sge element = element_of(lane, place, i);
        char *there = &lane.crew->memory[element.offset];
        std::memcpy(to_elements ? there : piece, to_elements ? piece : there, element.len);
        piece += element.len;
    }
}

static void fill(const Lane &lane, uint64_t place, uint64_t number) {
    const auto piece = scratch_of(lane);
    if (lane.crew->operation.fetches()) // so that data of an earlier one does not pass
        std::memset(piece.data(), 0xff, piece.size());
    else if (lane.crew->recording)
        lane.crew->recording->head.fill(piece, lane.index, number);
    else
        pattern_fill(piece, lane.index, number);
    gather(lane, place, true);
}

static void check_data(std::span<const char> data, const Lane &lane, uint64_t number) {
    if (const size_t wrong = pattern_check(data, lane.index, number); wrong != data.size())
        fail("verification failed: connection {}, operation {}: byte {} of {} is wrong in the "
             "client's memory",
             lane.index, lane.done, wrong, data.size());
}

// Each of both atomics counts the operations on its place, and brings what it was before.
void check_fetched(Lane &lane) {
    const uint64_t depth = lane.crew->plan.depth, place = lane.done % depth;
    gather(lane, place, false);
    if (lane.crew->operation.is_fetching()) {
        uint64_t found;
        std::memcpy(&found, scratch_of(lane).data(), sizeof(found));
        if (found != lane.done / depth)
            fail("verification failed: connection {}, operation {}: it found {}, not {}",
                 lane.index, lane.done, found, lane.done / depth);
        return;
    }
    check_data(scratch_of(lane), lane, place);
}

static size_t receive_place(const Lane &lane, uint64_t number) {
    const Plan &plan = lane.crew->plan;
    return lane.receive_base + number % receives_of(plan) * plan.stride();
}

void check_reply(Lane &lane) {
    check_data(
        lane.crew->memory.subspan(receive_place(lane, lane.replies), lane.crew->plan.size),
        lane, lane.replies);
}

// ---- posting -------------------------------------------------------------------------------

void post_receive(Lane &lane, uint64_t number) {
    const size_t size = lane.crew->operation.is_echoed ? lane.crew->plan.size : CREDIT_SIZE;
    must(lane.link.conn.recv(lane.crew->mr, receive_place(lane, number), size, &lane),
         "cannot post a receive");
}

static rpma_work work_of(Lane &lane, uint64_t number, int completion) {
    const Plan &plan = lane.crew->plan;
    const Operation &operation = lane.crew->operation;
    const uint64_t place = number % plan.depth;
    rpma_work work{};
    work.type = plan.type(number);
    const bool is_inline =
        plan.size <= plan.inline_size && work.type != RPMA_WORK_READ && !operation.is_atomic();
    work.flags = completion | (is_inline ? RPMA_F_INLINE : 0);
    work.op_context = &lane;
    work.remote = *lane.crew->remote;
    work.remote_offset = lane.crew->plan.place(lane.index, number);
    if (work.type != operation.type) { // what reads bring is not what the writes write
        work.local = {lane.crew->mr, scratch_place(lane), plan.size};
        return work;
    }
    if (plan.elements == 1) {
        work.local = element_of(lane, place, 0);
        work.compare = operation.type == RPMA_WORK_COMPARE_SWAP ? number / plan.depth : 0;
        if (operation.is_fetching()) // both add 1
            work.value = work.compare + 1;
        else if (operation.is_atomic())
            std::memcpy(&work.value, &lane.crew->memory[work.local.offset], sizeof(work.value));
        return work;
    }
    for (uint64_t i = 0; i < plan.elements; i++)
        lane.elements[i] = element_of(lane, place, i);
    work.sgl = lane.elements.data();
    work.nsge = static_cast<uint32_t>(plan.elements);
    return work;
}

static rpma_work flush_of(const Lane &lane, uint64_t number, int type, int completion) {
    rpma_work work{};
    work.type = RPMA_WORK_FLUSH;
    work.flags = completion;
    work.op_context = &lane;
    work.remote = *lane.crew->remote;
    work.remote_offset = lane.crew->plan.place(lane.index, number);
    work.flush_type = static_cast<rpma_flush_type>(type);
    work.flush_len = lane.crew->plan.size;
    return work;
}

// Adds the operation, and its flush if it has one, to the batch or, without one, posts it.
static void post(Lane &lane, uint64_t number, rpma::batch *batch) {
    const int flush = lane.crew->operation.flush;
    const bool is_signaled = (number + 1) % lane.crew->plan.signal_every() == 0;
    const int completion = is_signaled ? RPMA_F_COMPLETION_ALWAYS : RPMA_F_COMPLETION_ON_ERROR;
    const uint32_t count = works_of_each(lane.crew->plan);
    std::array<rpma_work, 2> works;
    works[0] = work_of(lane, number, count == 1 ? completion : RPMA_F_COMPLETION_ON_ERROR);
    if (count == 2)
        works[1] = flush_of(lane, number, flush, completion);
    auto status = batch ? batch->add(works[0]) : lane.link.conn.post({works.data(), count});
    if (batch && count == 2 && status == rpma::status::ok)
        status = batch->add(works[1]);
    if (status != rpma::status::ok)
        must(status, fmt::format("cannot post {}", lane.crew->operation.name));
}

static void fill_batch(Lane &lane, uint64_t first, rpma::batch &batch) {
    for (uint64_t i = 0; i < lane.crew->plan.batch; i++)
        post(lane, first + i, &batch);
}

void start(Lane &lane) {
    lane.link.start(lane.crew->peer, lane.crew->address, lane.crew->port);
}

Link::Step go_on(Lane &lane) {
    Crew &crew = *lane.crew;
    const auto step = lane.link.go_on();
    if (step != Link::Step::ready)
        return step;
    const rpma::conn_cfg cfg = crew.cfg_of(lane, lane_queues(crew.plan), true);
    attempt("cannot make a connection with these settings",
            [&] { lane.link.request.setup(cfg); });
    lane.link.connect(greeting_text("data", crew.session, lane.index));
    return Link::Step::none;
}

void prepare(Lane &lane) {
    const Plan &plan = lane.crew->plan;
    const uint64_t batches = plan.batch > 1 ? plan.depth / plan.batch : 0;
    lane.base = target_before_lanes(plan) + lane.index * lane_memory_size(plan);
    lane.receive_base = lane.base + plan.depth * place_size(plan);
    lane.allowed = plan.receives();
    lane.started.resize(plan.depth);
    for (uint64_t i = 0; i < batches; i++) {
        lane.batches.push_back(attempt("cannot make a batch", [&] {
            return rpma::batch(lane.link.conn,
                               static_cast<uint32_t>(plan.batch) * works_of_each(plan));
        }));
        if (plan.prepared)
            fill_batch(lane, i * plan.batch, lane.batches[i]);
    }
    for (uint64_t i = 0; lane.crew->operation.is_message && i < receives_of(plan); i++)
        post_receive(lane, i);
}

static void post_batch(Lane &lane) {
    const Plan &plan = lane.crew->plan;
    rpma::batch &batch = lane.batches[lane.posted % plan.depth / plan.batch];
    if (!plan.prepared) {
        must(batch.reset(), "cannot reset a batch");
        fill_batch(lane, lane.posted, batch);
    }
    if (const auto status = batch.post(); status != rpma::status::ok)
        must(status, fmt::format("cannot post a batch of {}", lane.crew->operation.name));
}

void post(Lane &lane) {
    const Plan &plan = lane.crew->plan;
    const uint64_t first = lane.posted % plan.depth;
    for (uint64_t i = 0; (plan.verify || plan.ring) && i < plan.batch; i++)
        fill(lane, first + i, lane.posted + i);
    // What was due earlier began then, so that a late answer delays no clock.
    const uint64_t now = lane.due ? lane.due : now_ns();
    for (uint64_t i = 0; i < plan.batch; i++)
        lane.started[first + i] = now;
    if (lane.due)
        lane.due += plan.batch * plan.connections * 1000000000 / plan.rate;
    if (plan.batch > 1)
        post_batch(lane);
    else
        post(lane, lane.posted, nullptr);
    lane.posted += plan.batch;
    if (lane.crew->operation.is_echoed)
        lane.unretired += plan.batch;
}

void post_flush(Lane &lane) {
    const rpma_work flush =
        flush_of(lane, 0, RPMA_FLUSH_TYPE_VISIBILITY, RPMA_F_COMPLETION_ALWAYS);
    must(lane.link.conn.post({&flush, 1}), "cannot flush");
}
