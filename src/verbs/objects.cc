// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// objects.cc -- calls of libibverbs that create objects

#include "verbs/objects.hh"

#include "verbs/causes.hh"

namespace rpma {

bool query_device(Call &call, ibv_context &device, ibv_device_attr_ex &attributes) {
    attributes = {};
    const int error = ibv_query_device_ex(&device, nullptr, &attributes);
    if (error != 0)
        RPMA_FAIL(call, RPMA_E_PROVIDER, error, "ibv_query_device_ex()");
    return error == 0;
}

Pd alloc_pd(Call &call, ibv_context &device, uint32_t objects) {
    errno = 0;
    ibv_pd *pd = ibv_alloc_pd(&device);
    const int error = errno;
    call.restore_errno();
    if (pd == nullptr && error == 0)
        RPMA_FAIL(call, RPMA_E_UNKNOWN, 0,
                  "ibv_alloc_pd() failed, the provider gives no reason");
    else if (pd == nullptr)
        RPMA_FAIL_ADVISING(call, error == ENOMEM ? RPMA_E_NOMEM : RPMA_E_PROVIDER, error,
                           advice_for({.step = PD, .error = error, .objects = objects}).chars,
                           "ibv_alloc_pd()");
    return Pd(pd);
}

namespace {

Text queue_advice(Step step, int error, const char *parameter, const char *attribute,
                  const SizeRequest &size) {
    return advice_for(
        {.step = step,
         .error = error,
         .objects = size.objects,
         .sizes = {{parameter, attribute, size.requested, size.limit, size.setter}}});
}

} // namespace

void report_no_cq(Call &call, int error, const SizeRequest &size, uint32_t comp_vector) {
    if (size.requested > INT_MAX)
        error = EINVAL;
    RPMA_FAIL_ADVISING(call, RPMA_E_PROVIDER, error,
                       queue_advice(CQ, error, "cqe", "max_cqe", size).chars,
                       "ibv_create_cq(cqe=%u, comp_vector=%u)", size.requested, comp_vector);
}

void report_no_comp_channel(Call &call, int error) {
    RPMA_FAIL_ADVISING(call, RPMA_E_PROVIDER, error,
                       advice_for({.step = COMP_CHANNEL, .error = error}).chars,
                       "ibv_create_comp_channel()");
}

int report_no_cq_event(const char *function, int error) {
    Call call(function);
    // EWOULDBLOCK is EAGAIN on Linux.
    if (error == EAGAIN || error == EWOULDBLOCK || error == EINTR) // GCOVR_EXCL_BR_LINE
        RPMA_WOULD_BLOCK(call, RPMA_E_NO_COMPLETION, error, "ibv_get_cq_event()");
    else
        RPMA_FAIL(call, RPMA_E_PROVIDER, error, "ibv_get_cq_event()");
    return call.finish();
}

int report_unexpected_cq_event(const char *function, ibv_cq &queue, const char *expected) {
    ibv_ack_cq_events(&queue, 1);
    Call call(function);
    RPMA_FAIL(call, RPMA_E_UNKNOWN, 0, "ibv_get_cq_event() returned a CQ that is not %s",
              expected);
    return call.finish();
}

void report_arm_failure(Call &call, int error) {
    RPMA_FAIL(call, RPMA_E_PROVIDER, error, "ibv_req_notify_cq()");
}

int report_arm_failure(const char *function, int error) {
    Call call(function);
    report_arm_failure(call, error);
    return call.finish();
}

Srq create_srq(Call &call, ibv_pd &pd, SizeRequest &size, uint32_t max_sge) {
    ibv_srq_init_attr attributes = {};
    attributes.attr.max_wr = size.requested;
    attributes.attr.max_sge = max_sge;
    Srq queue(ibv_create_srq(&pd, &attributes));
    if (!queue) {
        const int error = errno;
        RPMA_FAIL_ADVISING(call, RPMA_E_PROVIDER, error,
                           queue_advice(SRQ, error, "max_wr", "max_srq_wr", size).chars,
                           "ibv_create_srq(max_wr=%u, max_sge=%u)", size.requested, max_sge);
    }
    size.requested = attributes.attr.max_wr;
    return queue;
}

void report_max_sge(Call &call, const char *attribute, SizeRequest sges) {
    if (sges.requested > sges.limit)
        RPMA_FAIL(call, RPMA_E_INVAL, 0,
                  "max_sge of cfg is %u, the device has %u (%s): reduce it with %s()",
                  sges.requested, sges.limit, attribute, sges.setter);
    else
        RPMA_FAIL(call, RPMA_E_INVAL, 0,
                  "max_sge of cfg is %u, librpma has %u at most: reduce it with %s()",
                  sges.requested, MAX_SGE, sges.setter);
}

} // namespace rpma
