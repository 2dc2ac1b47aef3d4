// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// defaults.cc -- the default settings of connections and shared receive queues

#include "info.hh"

json defaults() {
    const rpma::conn_cfg connection;
    const rpma::srq_cfg queue;
    return {{"connection",
             {{"cq_size", connection.get_cq_size()},
              {"rcq_size", connection.get_rcq_size()},
              {"sq_size", connection.get_sq_size()},
              {"rq_size", connection.get_rq_size()},
              {"max_sge", connection.get_max_sge()},
              {"inline_size", connection.get_inline_size()},
              {"retry_count", connection.get_retry_count()},
              {"rnr_retry_count", connection.get_rnr_retry_count()},
              {"timeout_ms", connection.get_timeout()},
              {"ack_timeout_ms", connection.get_ack_timeout()}}},
            {"shared_receive_queue",
             {{"rq_size", queue.get_rq_size()},
              {"rcq_size", queue.get_rcq_size()},
              {"max_sge", queue.get_max_sge()}}}};
}
