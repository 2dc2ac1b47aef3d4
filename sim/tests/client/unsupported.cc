// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// unsupported.cc -- calls each function, and each function with an argument, that the fabric
// does not support: exactly one line names the function and the feature, and the call fails
// with EOPNOTSUPP. unsupported.py runs it on the fabric.
//
// sim-unsupported         prints the table: function and feature
// sim-unsupported NAME... checks the table, and the functions NAME, which it calls without
//                         arguments; prints each difference. The machine has no
//                         librdmacm.so.1 that works

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <iterator>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace {

ibv_context *context;
ibv_pd *pd;
ibv_cq *cq;
ibv_qp *qp;
rdma_cm_id *id;

// An object that no call can create. Each of its words is the context, which the inline
// functions of verbs.h read.
template <class T> T *any() {
    static ibv_context *words[256];
    for (ibv_context *&word : words)
        word = context;
    return reinterpret_cast<T *>(words);
}

struct Result {
    long value;
    bool is_pointer;
};
Result of(int value) {
    return {value, false};
}
Result of(const void *value) {
    return {reinterpret_cast<long>(value), true};
}

Result create_qp(int type, unsigned mask = 0, uint64_t ops = 0) {
    ibv_qp_init_attr_ex attr = {};
    attr.qp_type = static_cast<ibv_qp_type>(type);
    attr.send_cq = attr.recv_cq = cq;
    attr.pd = pd;
    attr.comp_mask = IBV_QP_INIT_ATTR_PD | mask | (ops ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0);
    attr.send_ops_flags = ops;
    attr.create_flags = IBV_QP_CREATE_SCATTER_FCS;
    return of(ibv_create_qp_ex(context, &attr));
}

Result post_request(ibv_wr_opcode opcode) {
    ibv_send_wr wr = {}, *bad;
    wr.opcode = opcode;
    return of(ibv_post_send(qp, &wr, &bad));
}

Result create_srq(ibv_srq_type type) {
    ibv_srq_init_attr_ex attr = {};
    attr.attr.max_wr = attr.attr.max_sge = 1;
    attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
    attr.srq_type = type;
    attr.pd = pd;
    return of(ibv_create_srq_ex(context, &attr));
}

Result resolve(int family) {
    sockaddr_storage address = {};
    address.ss_family = static_cast<sa_family_t>(family);
    return of(rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr *>(&address), 100));
}

constexpr char DM[] = "device memory is", FLOWS[] = "flow steering is",
               COUNTERS[] = "counters are", DOMAINS[] = "thread and parent domains are",
               QUEUES[] = "separate work queues are", XRC[] = "XRC is",
               IMPORT[] = "sharing of objects is", RAW[] = "raw packets are",
               TAGS[] = "tag matching is", RATES[] = "rate limits are",
               GIDS[] = "GIDs as addresses (AF_IB) are";

constexpr int ANY_ERROR = 0; // the device has its own error number for the opcode

const struct Row {
    const char *function, *feature;
    Result (*call)();
    int error = EOPNOTSUPP;
} rows[] = {
    {"ibv_alloc_dm", DM, [] { return of(ibv_alloc_dm(context, any<ibv_alloc_dm_attr>())); }},
    {"ibv_free_dm", DM, [] { return of(ibv_free_dm(any<ibv_dm>())); }},
    {"ibv_reg_dm_mr", DM, [] { return of(ibv_reg_dm_mr(pd, any<ibv_dm>(), 0, 8, 0)); }},
    {"ibv_create_flow", FLOWS, [] { return of(ibv_create_flow(qp, any<ibv_flow_attr>())); }},
    {"ibv_destroy_flow", FLOWS, [] { return of(ibv_destroy_flow(any<ibv_flow>())); }},
    {"ibv_create_flow_action_esp", FLOWS,
     [] { return of(ibv_create_flow_action_esp(context, any<ibv_flow_action_esp_attr>())); }},
    {"ibv_modify_flow_action_esp", FLOWS,
     [] {
         return of(ibv_modify_flow_action_esp(any<ibv_flow_action>(),
                                              any<ibv_flow_action_esp_attr>()));
     }},
    {"ibv_destroy_flow_action", FLOWS,
     [] { return of(ibv_destroy_flow_action(any<ibv_flow_action>())); }},
    {"ibv_create_counters", COUNTERS,
     [] { return of(ibv_create_counters(context, any<ibv_counters_init_attr>())); }},
    {"ibv_destroy_counters", COUNTERS,
     [] { return of(ibv_destroy_counters(any<ibv_counters>())); }},
    {"ibv_attach_counters_point_flow", COUNTERS,
     [] {
         return of(ibv_attach_counters_point_flow(any<ibv_counters>(),
                                                  any<ibv_counter_attach_attr>(), nullptr));
     }},
    {"ibv_read_counters", COUNTERS,
     [] { return of(ibv_read_counters(any<ibv_counters>(), any<uint64_t>(), 1, 0)); }},
    {"ibv_alloc_null_mr", "the null region is", [] { return of(ibv_alloc_null_mr(pd)); }},
    {"ibv_alloc_td", DOMAINS,
     [] { return of(ibv_alloc_td(context, any<ibv_td_init_attr>())); }},
    {"ibv_dealloc_td", DOMAINS, [] { return of(ibv_dealloc_td(any<ibv_td>())); }},
    {"ibv_alloc_parent_domain", DOMAINS,
     [] { return of(ibv_alloc_parent_domain(context, any<ibv_parent_domain_init_attr>())); }},
    {"ibv_modify_qp_rate_limit", RATES,
     [] { return of(ibv_modify_qp_rate_limit(qp, any<ibv_qp_rate_limit_attr>())); }},
    {"ibv_modify_qp", RATES,
     [] {
         ibv_qp_attr attr = {};
         return of(ibv_modify_qp(qp, &attr, IBV_QP_RATE_LIMIT));
     }},
    {"ibv_post_srq_ops", TAGS,
     [] { return of(ibv_post_srq_ops(any<ibv_srq>(), any<ibv_ops_wr>(), nullptr)); }},
    {"ibv_create_rwq_ind_table", QUEUES,
     [] { return of(ibv_create_rwq_ind_table(context, any<ibv_rwq_ind_table_init_attr>())); }},
    {"ibv_destroy_rwq_ind_table", QUEUES,
     [] { return of(ibv_destroy_rwq_ind_table(any<ibv_rwq_ind_table>())); }},
    {"ibv_create_wq", QUEUES,
     [] { return of(ibv_create_wq(context, any<ibv_wq_init_attr>())); }},
    {"ibv_modify_wq", QUEUES,
     [] { return of(ibv_modify_wq(any<ibv_wq>(), any<ibv_wq_attr>())); }},
    {"ibv_destroy_wq", QUEUES, [] { return of(ibv_destroy_wq(any<ibv_wq>())); }},
    {"ibv_open_qp", "opening of queue pairs is",
     [] { return of(ibv_open_qp(context, any<ibv_qp_open_attr>())); }},
    {"ibv_open_xrcd", XRC,
     [] { return of(ibv_open_xrcd(context, any<ibv_xrcd_init_attr>())); }},
    {"ibv_close_xrcd", XRC, [] { return of(ibv_close_xrcd(any<ibv_xrcd>())); }},
    {"ibv_get_srq_num", XRC,
     [] { return of(ibv_get_srq_num(any<ibv_srq>(), any<uint32_t>())); }},
    {"ibv_create_srq_ex", XRC, [] { return create_srq(IBV_SRQT_XRC); }},
    {"ibv_create_srq_ex", TAGS, [] { return create_srq(IBV_SRQT_TM); }},
    {"ibv_modify_cq", "moderation of completions is",
     [] { return of(ibv_modify_cq(cq, any<ibv_modify_cq_attr>())); }},
    {"ibv_import_device", IMPORT, [] { return of(ibv_import_device(0)); }},
    {"ibv_import_pd", IMPORT, [] { return of(ibv_import_pd(context, 0)); }},
    {"ibv_import_mr", IMPORT, [] { return of(ibv_import_mr(pd, 0)); }},
    {"ibv_import_dm", IMPORT, [] { return of(ibv_import_dm(context, 0)); }},
    {"ibv_reg_dmabuf_mr", "registration of a dma-buf is",
     [] { return of(ibv_reg_dmabuf_mr(pd, 0, 8, 0, 0, 0)); }},
    {"ibv_set_ece", "enhanced connections (ECE) are",
     [] {
         ibv_ece ece = {0x15b3, 1, 0};
         return of(ibv_set_ece(qp, &ece));
     }},
    {"ibv_create_qp", RAW, [] { return create_qp(IBV_QPT_RAW_PACKET); }},
    {"ibv_create_qp", RAW,
     [] { return create_qp(IBV_QPT_RC, IBV_QP_INIT_ATTR_MAX_TSO_HEADER); }},
    {"ibv_create_qp", RAW, [] { return create_qp(IBV_QPT_RC, 0, IBV_QP_EX_WITH_TSO); }},
    {"ibv_create_qp", XRC, [] { return create_qp(IBV_QPT_XRC_SEND); }},
    {"ibv_create_qp", XRC, [] { return create_qp(IBV_QPT_XRC_RECV); }},
    {"ibv_create_qp", XRC, [] { return create_qp(IBV_QPT_RC, IBV_QP_INIT_ATTR_XRCD); }},
    {"ibv_create_qp", "queue pairs of drivers are", [] { return create_qp(IBV_QPT_DRIVER); }},
    {"ibv_create_qp", QUEUES, [] { return create_qp(IBV_QPT_RC, IBV_QP_INIT_ATTR_RX_HASH); }},
    {"ibv_create_qp", QUEUES, [] { return create_qp(IBV_QPT_RC, IBV_QP_INIT_ATTR_IND_TABLE); }},
    {"ibv_create_qp", "creation flags of queue pairs are",
     [] { return create_qp(IBV_QPT_RC, IBV_QP_INIT_ATTR_CREATE_FLAGS); }},
    {"ibv_post_send", RAW, [] { return post_request(IBV_WR_TSO); }, ANY_ERROR},
    {"rdma_resolve_addr", GIDS, [] { return resolve(AF_IB); }},
    {"rdma_bind_addr", GIDS,
     [] {
         sockaddr_storage address = {};
         address.ss_family = AF_IB;
         return of(rdma_bind_addr(id, reinterpret_cast<sockaddr *>(&address)));
     }},
};

// The result of a call in a process of its own, and what it printed: a process prints the line
// of a feature once.
template <class Call>
bool check_function(const char *function, const char *feature, int error, const Call &call) {
    int ends[2];
    if (pipe(ends) != 0)
        abort();
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        errno = 0;
        const Result result = call();
        const int got =
            result.is_pointer || result.value == -1 ? errno : static_cast<int>(result.value);
        const bool fails = !result.is_pointer || result.value == 0;
        _exit(fails && (error == ANY_ERROR ? got != 0 : got == error) ? 0 : 1);
    }
    close(ends[1]);
    std::string printed;
    char bytes[512];
    for (ssize_t length; (length = read(ends[0], bytes, sizeof(bytes))) > 0;)
        printed.append(bytes, static_cast<size_t>(length));
    close(ends[0]);
    int status = -1;
    waitpid(child, &status, 0);
    const std::string expected = std::string("rdma-sim: sim-unsupported: ") + function + ": " +
                                 feature + " not supported: see Limits in rdma-sim(1)\n";
    if (printed == expected && status == 0)
        return true;
    printf("%s (%s): status %#x, prints \"%s\"\n", function, feature,
           static_cast<unsigned>(status), printed.c_str());
    return false;
}

// Each operation of a context is supported or refused.
bool has_all_operations() {
    struct verbs_context *const verbs = verbs_get_ctx(context);
    const auto *const first = reinterpret_cast<void *const *>(&verbs->query_port);
    const auto *const last = reinterpret_cast<void *const *>(&verbs->sz);
    const void *const unused[] = {&verbs->priv, &verbs->ABI_placeholder1,
                                  &verbs->ABI_placeholder2, &verbs->_ABI_placeholder3};
    bool has_all = true;
    for (const auto *one = first; one < last; one++)
        if (!*one && std::count(std::begin(unused), std::end(unused), one) == 0) {
            printf("operation %td of struct verbs_context is NULL\n", one - first);
            has_all = false;
        }
    return has_all;
}

void must(bool succeeded, const char *call) {
    if (!succeeded) {
        printf("%s failed: %s\n", call, strerror(errno));
        exit(1);
    }
}

} // namespace

int main(int argc, char **argv) {
    if (argc == 1) {
        for (const Row &row : rows)
            printf("%s\t%s\n", row.function, row.feature);
        return 0;
    }
    ibv_device **const devices = ibv_get_device_list(nullptr);
    must(devices && (context = ibv_open_device(devices[0])), "ibv_open_device()");
    must((pd = ibv_alloc_pd(context)) && (cq = ibv_create_cq(context, 4, nullptr, nullptr, 0)),
         "ibv_create_cq()");
    ibv_qp_init_attr attr = {};
    attr.send_cq = attr.recv_cq = cq;
    attr.cap = {4, 4, 1, 1, 0};
    attr.qp_type = IBV_QPT_RC;
    must((qp = ibv_create_qp(pd, &attr)), "ibv_create_qp()");
    must(rdma_create_id(rdma_create_event_channel(), &id, nullptr, RDMA_PS_TCP) == 0,
         "rdma_create_id()");
    bool is_right = has_all_operations();
    for (const Row &row : rows)
        is_right &= check_function(row.function, row.feature, row.error, row.call);
    for (int i = 1; i < argc; i++) {
        const bool is_socket = argv[i][0] == 'r';
        auto *const function = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, argv[i]));
        must(function, argv[i]);
        is_right &=
            check_function(argv[i],
                           is_socket ? "rsockets without librdmacm.so.1 of the machine are"
                                     : "the interface of providers is",
                           EOPNOTSUPP, [=] { return of(function()); });
    }
    return is_right ? 0 : 1;
}
