// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// load_connection.cc -- one connection of the client's load: places, data, and posting

#include "load_connection.hh"

#include "pattern.hh"

static constexpr size_t SGE_GAP = 64;          // bytes between the SGEs of an operation
static constexpr uint64_t CREDIT_RECEIVES = 4; // the server has at most two outstanding credits

static size_t place_size(const Plan &plan) {
    return plan.stride() + (plan.elements > 1 ? aligned(plan.elements * SGE_GAP) : 0);
}

static uint64_t receives_of(const Plan &plan) {
    return plan.op().is_echoed ? plan.depth : CREDIT_RECEIVES;
}

// One additional place is scratch space, in which the SGEs of an operation are assembled.
size_t connection_memory_size(const Plan &plan) {
    const size_t receives = plan.op().is_message ? receives_of(plan) * plan.stride() : 0;
    return plan.depth * place_size(plan) + receives + plan.stride();
}

size_t connection_memory_offset(const Plan &plan) {
    return plan.both ? plan.target_size() : 0;
}

static uint32_t requests_per_operation(const Plan &plan) {
    return plan.op().flush == NO_FLUSH ? 1 : 2;
}

Queues connection_queues(const Plan &plan) {
    if (plan.op().is_message)
        return {plan.sends(), receives_of(plan)};
    return {plan.depth * requests_per_operation(plan) + 1, 1};
}

// ---- data ----------------------------------------------------------------------------------

// An SGE of the operation in a place.
static rpma_sge sge_of(const Connection &connection, uint64_t place, uint64_t index) {
    const Plan &plan = connection.generator->plan;
    const size_t each = plan.size / plan.elements;
    return {connection.generator->mr,
            connection.base + place * place_size(plan) + index * (each + SGE_GAP),
            index + 1 < plan.elements ? each : plan.size - each * index};
}

static size_t scratch_offset(const Connection &connection) {
    return connection.base + connection_memory_size(connection.generator->plan) -
           connection.generator->plan.stride();
}

static std::span<char> scratch_of(const Connection &connection) {
    return connection.generator->memory.subspan(scratch_offset(connection),
                                                connection.generator->plan.size);
}

// Copies between the SGEs of a place and the scratch space.
static void copy_scratch(const Connection &connection, uint64_t place, bool to_sges) {
    char *scratch = scratch_of(connection).data();
    for (uint64_t i = 0; i < connection.generator->plan.elements; i++) {
        const rpma_sge sge = sge_of(connection, place, i);
        char *data = &connection.generator->memory[sge.offset];
        std::memcpy(to_sges ? data : scratch, to_sges ? scratch : data, sge.len);
        scratch += sge.len;
    }
}

static void write_data(const Connection &connection, uint64_t place, uint64_t number) {
    const auto scratch = scratch_of(connection);
    if (connection.generator->operation.fetches()) // makes the check of stale data fail
        std::memset(scratch.data(), 0xff, scratch.size());
    else
        pattern_fill(scratch, connection.index, number);
    copy_scratch(connection, place, true);
}

static void check_data(std::span<const char> data, const Connection &connection,
                       uint64_t number) {
    if (const size_t wrong = pattern_check(data, connection.index, number);
        wrong != data.size())
        fail("verification failed: connection {}, operation {}: byte {} of {} is wrong in the "
             "client's memory",
             connection.index, connection.done, wrong, data.size());
}

// Both atomics increment the word of their place and return the previous value.
void check_fetched(Connection &connection) {
    const uint64_t depth = connection.generator->plan.depth, place = connection.done % depth;
    copy_scratch(connection, place, false);
    if (connection.generator->operation.is_fetching()) {
        uint64_t found;
        std::memcpy(&found, scratch_of(connection).data(), sizeof(found));
        if (found != connection.done / depth)
            fail("verification failed: connection {}, operation {}: it found {}, not {}",
                 connection.index, connection.done, found, connection.done / depth);
        return;
    }
    check_data(scratch_of(connection), connection, place);
}

static size_t receive_offset(const Connection &connection, uint64_t number) {
    const Plan &plan = connection.generator->plan;
    return connection.receive_base + number % receives_of(plan) * plan.stride();
}

void check_reply(Connection &connection) {
    check_data(
        connection.generator->memory.subspan(receive_offset(connection, connection.replies),
                                             connection.generator->plan.size),
        connection, connection.replies);
}

// ---- posting -------------------------------------------------------------------------------

void post_receive(Connection &connection, uint64_t number) {
    const size_t size = connection.generator->operation.is_echoed
                            ? connection.generator->plan.size
                            : CREDIT_SIZE;
    require_ok(connection.link.conn.recv(connection.generator->mr,
                                         receive_offset(connection, number), size, &connection),
               "cannot post a receive");
}

static rpma_work work_of(Connection &connection, uint64_t number, int completion) {
    const Plan &plan = connection.generator->plan;
    const Operation &operation = connection.generator->operation;
    const uint64_t place = number % plan.depth;
    rpma_work work{};
    work.type = plan.type(number);
    const bool is_inline =
        plan.size <= plan.inline_size && work.type != RPMA_WORK_READ && !operation.is_atomic();
    work.flags = completion | (is_inline ? RPMA_F_INLINE : 0);
    work.op_context = &connection;
    work.remote = *connection.generator->remote;
    work.remote_offset = connection.generator->plan.offset_of(connection.index, number);
    if (work.type != operation.type) { // a read among writes: its data is not checked
        work.local = {connection.generator->mr, scratch_offset(connection), plan.size};
        return work;
    }
    if (plan.elements == 1) {
        work.local = sge_of(connection, place, 0);
        work.compare = operation.type == RPMA_WORK_COMPARE_SWAP ? number / plan.depth : 0;
        if (operation.is_fetching()) // both add 1
            work.value = work.compare + 1;
        else if (operation.is_atomic())
            std::memcpy(&work.value, &connection.generator->memory[work.local.offset],
                        sizeof(work.value));
        return work;
    }
    for (uint64_t i = 0; i < plan.elements; i++)
        connection.sges[i] = sge_of(connection, place, i);
    work.sgl = connection.sges.data();
    work.nsge = static_cast<uint32_t>(plan.elements);
    return work;
}

static rpma_work flush_of(const Connection &connection, uint64_t number, int type,
                          int completion) {
    rpma_work work{};
    work.type = RPMA_WORK_FLUSH;
    work.flags = completion;
    work.op_context = &connection;
    work.remote = *connection.generator->remote;
    work.remote_offset = connection.generator->plan.offset_of(connection.index, number);
    work.flush_type = static_cast<rpma_flush_type>(type);
    work.flush_len = connection.generator->plan.size;
    return work;
}

// Adds the operation and its flush, if any, to the batch; posts them if there is no batch.
static void post_operation(Connection &connection, uint64_t number, rpma::batch *batch) {
    const int flush = connection.generator->operation.flush;
    const bool is_signaled = (number + 1) % connection.generator->plan.signal_every() == 0;
    const int completion = is_signaled ? RPMA_F_COMPLETION_ALWAYS : RPMA_F_COMPLETION_ON_ERROR;
    const uint32_t count = requests_per_operation(connection.generator->plan);
    std::array<rpma_work, 2> works;
    works[0] =
        work_of(connection, number, count == 1 ? completion : RPMA_F_COMPLETION_ON_ERROR);
    if (count == 2)
        works[1] = flush_of(connection, number, flush, completion);
    auto status =
        batch ? batch->add(works[0]) : connection.link.conn.post({works.data(), count});
    if (batch && count == 2 && status == rpma::status::ok)
        status = batch->add(works[1]);
    if (status != rpma::status::ok)
        require_ok(status, fmt::format("cannot post {}", connection.generator->operation.name));
}

static void fill_batch(Connection &connection, uint64_t first, rpma::batch &batch) {
    for (uint64_t i = 0; i < connection.generator->plan.batch; i++)
        post_operation(connection, first + i, &batch);
}

void start(Connection &connection) {
    connection.link.start(connection.generator->peer, connection.generator->address,
                          connection.generator->port);
}

CmLink::Step advance(Connection &connection) {
    LoadGenerator &generator = *connection.generator;
    const auto step = connection.link.advance();
    if (step != CmLink::Step::ready)
        return step;
    const rpma::conn_cfg cfg =
        generator.cfg_of(connection, connection_queues(generator.plan), true);
    attempt("cannot create a connection with these settings",
            [&] { connection.link.request.setup(cfg); });
    connection.link.connect(greeting_text("data", generator.session, connection.index));
    return CmLink::Step::none;
}

void prepare(Connection &connection) {
    const Plan &plan = connection.generator->plan;
    const uint64_t batches = plan.batch > 1 ? plan.depth / plan.batch : 0;
    connection.base =
        connection_memory_offset(plan) + connection.index * connection_memory_size(plan);
    connection.receive_base = connection.base + plan.depth * place_size(plan);
    connection.allowed = plan.receives();
    connection.started.resize(plan.depth);
    for (uint64_t i = 0; i < batches; i++) {
        connection.batches.push_back(attempt("cannot create a batch", [&] {
            return rpma::batch(connection.link.conn, static_cast<uint32_t>(plan.batch) *
                                                         requests_per_operation(plan));
        }));
        if (plan.prepared)
            fill_batch(connection, i * plan.batch, connection.batches[i]);
    }
    for (uint64_t i = 0; connection.generator->operation.is_message && i < receives_of(plan);
         i++)
        post_receive(connection, i);
}

static void post_batch(Connection &connection) {
    const Plan &plan = connection.generator->plan;
    rpma::batch &batch = connection.batches[connection.posted % plan.depth / plan.batch];
    if (!plan.prepared) {
        require_ok(batch.reset(), "cannot reset a batch");
        fill_batch(connection, connection.posted, batch);
    }
    if (const auto status = batch.post(); status != rpma::status::ok)
        require_ok(status, fmt::format("cannot post a batch of {}",
                                       connection.generator->operation.name));
}

void post(Connection &connection) {
    const Plan &plan = connection.generator->plan;
    const uint64_t first = connection.posted % plan.depth;
    for (uint64_t i = 0; plan.verify && i < plan.batch; i++)
        write_data(connection, first + i, connection.posted + i);
    // The latency of an overdue operation begins at its due time, so that it includes the wait
    // for earlier ones.
    const uint64_t now = connection.due ? connection.due : now_ns();
    for (uint64_t i = 0; i < plan.batch; i++)
        connection.started[first + i] = now;
    if (connection.due)
        connection.due += plan.batch * plan.connections * 1000000000 / plan.rate;
    if (plan.batch > 1)
        post_batch(connection);
    else
        post_operation(connection, connection.posted, nullptr);
    connection.posted += plan.batch;
    if (connection.generator->operation.is_echoed)
        connection.outstanding_sends += plan.batch;
}

void post_flush(Connection &connection) {
    const rpma_work flush =
        flush_of(connection, 0, RPMA_FLUSH_TYPE_VISIBILITY, RPMA_F_COMPLETION_ALWAYS);
    require_ok(connection.link.conn.post({&flush, 1}), "cannot flush");
}
