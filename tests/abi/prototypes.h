// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// prototypes.h -- the functions as their releases declared them: no parameter ever changed.
//
// A second witness beside include/librpma.h: view.py makes the headers of old releases from it,
// and a compiler that reads both files finds their differences. contract/symbols.tsv lists the
// functions of each release.

int rpma_atomic_write(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
                      const char src[8], int flags, const void *op_context);
int rpma_batch_add(struct rpma_batch *batch, const struct rpma_work *work);
int rpma_batch_delete(struct rpma_batch **batch_ptr);
int rpma_batch_get_size(const struct rpma_batch *batch, uint32_t *size, uint32_t *room);
int rpma_batch_new(struct rpma_conn *conn, uint32_t max_ops, struct rpma_batch **batch_ptr);
int rpma_batch_post(struct rpma_batch *batch, uint32_t *posted);
int rpma_batch_reset(struct rpma_batch *batch);
int rpma_batch_set(struct rpma_batch *batch, uint32_t index, const struct rpma_work *work);
int rpma_conn_apply_remote_peer_cfg(struct rpma_conn *conn, const struct rpma_peer_cfg *pcfg);
int rpma_conn_cfg_delete(struct rpma_conn_cfg **cfg_ptr);
int rpma_conn_cfg_get_ack_timeout(const struct rpma_conn_cfg *cfg, int *timeout_ms);
int rpma_conn_cfg_get_compl_channel(const struct rpma_conn_cfg *cfg, bool *shared);
int rpma_conn_cfg_get_cq(const struct rpma_conn_cfg *cfg, struct rpma_cq **cq_ptr);
int rpma_conn_cfg_get_cq_size(const struct rpma_conn_cfg *cfg, uint32_t *cq_size);
int rpma_conn_cfg_get_flush_mode(const struct rpma_conn_cfg *cfg, enum rpma_flush_mode *mode);
int rpma_conn_cfg_get_inline_size(const struct rpma_conn_cfg *cfg, uint32_t *inline_size);
int rpma_conn_cfg_get_max_sge(const struct rpma_conn_cfg *cfg, uint32_t *max_sge);
int rpma_conn_cfg_get_rcq(const struct rpma_conn_cfg *cfg, struct rpma_cq **rcq_ptr);
int rpma_conn_cfg_get_rcq_size(const struct rpma_conn_cfg *cfg, uint32_t *rcq_size);
int rpma_conn_cfg_get_retry_count(const struct rpma_conn_cfg *cfg, uint32_t *retry_count);
int rpma_conn_cfg_get_rnr_retry_count(const struct rpma_conn_cfg *cfg,
                                      uint32_t *rnr_retry_count);
int rpma_conn_cfg_get_rq_size(const struct rpma_conn_cfg *cfg, uint32_t *rq_size);
int rpma_conn_cfg_get_sq_size(const struct rpma_conn_cfg *cfg, uint32_t *sq_size);
int rpma_conn_cfg_get_srq(const struct rpma_conn_cfg *cfg, struct rpma_srq **srq_ptr);
int rpma_conn_cfg_get_timeout(const struct rpma_conn_cfg *cfg, int *timeout_ms);
int rpma_conn_cfg_get_tos(const struct rpma_conn_cfg *cfg, uint8_t *tos);
int rpma_conn_cfg_new(struct rpma_conn_cfg **cfg_ptr);
int rpma_conn_cfg_set_ack_timeout(struct rpma_conn_cfg *cfg, int timeout_ms);
int rpma_conn_cfg_set_compl_channel(struct rpma_conn_cfg *cfg, bool shared);
int rpma_conn_cfg_set_cq(struct rpma_conn_cfg *cfg, struct rpma_cq *cq);
int rpma_conn_cfg_set_cq_size(struct rpma_conn_cfg *cfg, uint32_t cq_size);
int rpma_conn_cfg_set_flush_mode(struct rpma_conn_cfg *cfg, enum rpma_flush_mode mode);
int rpma_conn_cfg_set_inline_size(struct rpma_conn_cfg *cfg, uint32_t inline_size);
int rpma_conn_cfg_set_max_sge(struct rpma_conn_cfg *cfg, uint32_t max_sge);
int rpma_conn_cfg_set_rcq(struct rpma_conn_cfg *cfg, struct rpma_cq *rcq);
int rpma_conn_cfg_set_rcq_size(struct rpma_conn_cfg *cfg, uint32_t rcq_size);
int rpma_conn_cfg_set_retry_count(struct rpma_conn_cfg *cfg, uint32_t retry_count);
int rpma_conn_cfg_set_rnr_retry_count(struct rpma_conn_cfg *cfg, uint32_t rnr_retry_count);
int rpma_conn_cfg_set_rq_size(struct rpma_conn_cfg *cfg, uint32_t rq_size);
int rpma_conn_cfg_set_sq_size(struct rpma_conn_cfg *cfg, uint32_t sq_size);
int rpma_conn_cfg_set_srq(struct rpma_conn_cfg *cfg, struct rpma_srq *srq);
int rpma_conn_cfg_set_timeout(struct rpma_conn_cfg *cfg, int timeout_ms);
int rpma_conn_cfg_set_tos(struct rpma_conn_cfg *cfg, uint8_t tos);
int rpma_conn_completion_get(struct rpma_conn *conn, struct rpma_completion *cmpl);
int rpma_conn_completion_wait(struct rpma_conn *conn);
int rpma_conn_delete(struct rpma_conn **conn_ptr);
int rpma_conn_disconnect(struct rpma_conn *conn);
int rpma_conn_get_compl_fd(const struct rpma_conn *conn, int *fd);
int rpma_conn_get_completion_fd(const struct rpma_conn *conn, int *fd);
int rpma_conn_get_cq(const struct rpma_conn *conn, struct rpma_cq **cq_ptr);
int rpma_conn_get_event_fd(const struct rpma_conn *conn, int *fd);
int rpma_conn_get_flush_mode(const struct rpma_conn *conn, enum rpma_flush_mode *mode);
int rpma_conn_get_ibv_qp(const struct rpma_conn *conn, struct ibv_qp **qp_ptr);
int rpma_conn_get_private_data(const struct rpma_conn *conn,
                               struct rpma_conn_private_data *pdata);
int rpma_conn_get_qp_num(const struct rpma_conn *conn, uint32_t *qp_num);
int rpma_conn_get_rcq(const struct rpma_conn *conn, struct rpma_cq **rcq_ptr);
int rpma_conn_next_event(struct rpma_conn *conn, enum rpma_conn_event *event);
int rpma_conn_private_data_pack(const struct rpma_mr_local *const *mrs, uint32_t nmrs,
                                const struct rpma_peer_cfg *pcfg, const void *bytes,
                                uint32_t len, struct rpma_conn_private_data *pdata);
int rpma_conn_private_data_unpack(const struct rpma_conn_private_data *pdata,
                                  struct rpma_mr_remote **mrs, uint32_t *nmrs,
                                  struct rpma_peer_cfg **pcfg_ptr, const void **bytes,
                                  uint32_t *len);
int rpma_conn_req_connect(struct rpma_conn_req **req_ptr,
                          const struct rpma_conn_private_data *pdata,
                          struct rpma_conn **conn_ptr);
int rpma_conn_req_delete(struct rpma_conn_req **req_ptr);
int rpma_conn_req_get_peer_addr(const struct rpma_conn_req *req, struct sockaddr_storage *addr);
int rpma_conn_req_get_private_data(const struct rpma_conn_req *req,
                                   struct rpma_conn_private_data *pdata);
int rpma_conn_req_new(struct rpma_peer *peer, const char *addr, const char *port,
                      const struct rpma_conn_cfg *cfg, struct rpma_conn_req **req_ptr);
int rpma_conn_req_recv(struct rpma_conn_req *req, struct rpma_mr_local *dst, size_t offset,
                       size_t len, const void *op_context);
int rpma_conn_req_recv_many(struct rpma_conn_req *req, const struct rpma_receive *receives,
                            uint32_t count, uint32_t *posted);
int rpma_conn_wait(struct rpma_conn *conn, int flags, struct rpma_cq **cq, bool *is_rcq);
int rpma_cq_cfg_delete(struct rpma_cq_cfg **cfg_ptr);
int rpma_cq_cfg_get_comp_vector(const struct rpma_cq_cfg *cfg, uint32_t *comp_vector);
int rpma_cq_cfg_get_size(const struct rpma_cq_cfg *cfg, uint32_t *size);
int rpma_cq_cfg_new(struct rpma_cq_cfg **cfg_ptr);
int rpma_cq_cfg_set_comp_vector(struct rpma_cq_cfg *cfg, uint32_t comp_vector);
int rpma_cq_cfg_set_size(struct rpma_cq_cfg *cfg, uint32_t size);
int rpma_cq_delete(struct rpma_cq **cq_ptr);
int rpma_cq_get_completion(struct rpma_cq *cq, struct rpma_completion *cmpl);
int rpma_cq_get_fd(const struct rpma_cq *cq, int *fd);
int rpma_cq_get_ibv_cq(const struct rpma_cq *cq, struct ibv_cq **ibv_cq_ptr);
int rpma_cq_get_wc(struct rpma_cq *cq, int num_entries, struct ibv_wc *wc,
                   int *num_entries_got);
int rpma_cq_new(struct rpma_peer *peer, const struct rpma_cq_cfg *cfg, struct rpma_cq **cq_ptr);
int rpma_cq_wait(struct rpma_cq *cq);
int rpma_ep_get_fd(const struct rpma_ep *ep, int *fd);
int rpma_ep_listen(struct rpma_peer *peer, const char *addr, const char *port,
                   struct rpma_ep **ep_ptr);
int rpma_ep_next_conn_req(struct rpma_ep *ep, const struct rpma_conn_cfg *cfg,
                          struct rpma_conn_req **req_ptr);
int rpma_ep_shutdown(struct rpma_ep **ep_ptr);
const char *rpma_err_2str(int ret);
int rpma_flush(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
               size_t len, enum rpma_flush_type type, int flags, const void *op_context);
int rpma_log_get_threshold(enum rpma_log_threshold threshold, enum rpma_log_level *level);
int rpma_log_set_function(rpma_log_function *log_function);
int rpma_log_set_threshold(enum rpma_log_threshold threshold, enum rpma_log_level level);
int rpma_mr_advise(struct rpma_mr_local *mr, size_t offset, size_t len, int advice,
                   uint32_t flags);
int rpma_mr_dereg(struct rpma_mr_local **mr_ptr);
int rpma_mr_get_descriptor(const struct rpma_mr_local *mr, void *desc);
int rpma_mr_get_descriptor_size(const struct rpma_mr_local *mr, size_t *desc_size);
int rpma_mr_get_ibv_mr(const struct rpma_mr_local *mr, struct ibv_mr **ibv_mr_ptr);
int rpma_mr_get_ptr(const struct rpma_mr_local *mr, void **ptr);
int rpma_mr_get_size(const struct rpma_mr_local *mr, size_t *size);
int rpma_mr_reg(struct rpma_peer *peer, void *ptr, size_t size, int usage,
                struct rpma_mr_local **mr_ptr);
int rpma_mr_remote_delete(struct rpma_mr_remote **mr_ptr);
int rpma_mr_remote_from_descriptor(const void *desc, size_t desc_size,
                                   struct rpma_mr_remote **mr_ptr);
int rpma_mr_remote_get_flush_type(const struct rpma_mr_remote *mr, int *flush_type);
int rpma_mr_remote_get_key(const struct rpma_mr_remote *mr, uint64_t *addr, uint32_t *rkey);
int rpma_mr_remote_get_size(const struct rpma_mr_remote *mr, size_t *size);
int rpma_peer_cfg_delete(struct rpma_peer_cfg **pcfg_ptr);
int rpma_peer_cfg_from_descriptor(const void *desc, size_t desc_size,
                                  struct rpma_peer_cfg **pcfg_ptr);
int rpma_peer_cfg_get_descriptor(const struct rpma_peer_cfg *pcfg, void *desc);
int rpma_peer_cfg_get_descriptor_size(const struct rpma_peer_cfg *pcfg, size_t *desc_size);
int rpma_peer_cfg_get_direct_write_to_pmem(const struct rpma_peer_cfg *pcfg, bool *supported);
int rpma_peer_cfg_get_served(const struct rpma_peer_cfg *pcfg, bool *is_stated, bool *flush,
                             bool *atomic_write);
int rpma_peer_cfg_new(struct rpma_peer_cfg **pcfg_ptr);
int rpma_peer_cfg_set_direct_write_to_pmem(struct rpma_peer_cfg *pcfg, bool supported);
int rpma_peer_cfg_set_served_by(struct rpma_peer_cfg *pcfg, const struct rpma_peer *peer);
int rpma_peer_delete(struct rpma_peer **peer_ptr);
int rpma_peer_get_ibv_pd(const struct rpma_peer *peer, struct ibv_pd **pd_ptr);
int rpma_peer_new(struct ibv_context *ibv_ctx, struct rpma_peer **peer_ptr);
int rpma_post(struct rpma_conn *conn, const struct rpma_work *work, uint32_t count,
              uint32_t *posted);
int rpma_read(struct rpma_conn *conn, struct rpma_mr_local *dst, size_t dst_offset,
              const struct rpma_mr_remote *src, size_t src_offset, size_t len, int flags,
              const void *op_context);
int rpma_recv(struct rpma_conn *conn, struct rpma_mr_local *dst, size_t offset, size_t len,
              const void *op_context);
int rpma_recv_many(struct rpma_conn *conn, const struct rpma_receive *receives, uint32_t count,
                   uint32_t *posted);
int rpma_send(struct rpma_conn *conn, const struct rpma_mr_local *src, size_t offset,
              size_t len, int flags, const void *op_context);
int rpma_send_with_imm(struct rpma_conn *conn, const struct rpma_mr_local *src, size_t offset,
                       size_t len, int flags, uint32_t imm, const void *op_context);
int rpma_srq_cfg_delete(struct rpma_srq_cfg **cfg_ptr);
int rpma_srq_cfg_get_max_sge(const struct rpma_srq_cfg *cfg, uint32_t *max_sge);
int rpma_srq_cfg_get_rcq_size(const struct rpma_srq_cfg *cfg, uint32_t *rcq_size);
int rpma_srq_cfg_get_rq_size(const struct rpma_srq_cfg *cfg, uint32_t *rq_size);
int rpma_srq_cfg_new(struct rpma_srq_cfg **cfg_ptr);
int rpma_srq_cfg_set_max_sge(struct rpma_srq_cfg *cfg, uint32_t max_sge);
int rpma_srq_cfg_set_rcq_size(struct rpma_srq_cfg *cfg, uint32_t rcq_size);
int rpma_srq_cfg_set_rq_size(struct rpma_srq_cfg *cfg, uint32_t rq_size);
int rpma_srq_delete(struct rpma_srq **srq_ptr);
int rpma_srq_get_rcq(const struct rpma_srq *srq, struct rpma_cq **rcq_ptr);
int rpma_srq_new(struct rpma_peer *peer, struct rpma_srq_cfg *cfg, struct rpma_srq **srq_ptr);
int rpma_srq_recv(struct rpma_srq *srq, struct rpma_mr_local *dst, size_t offset, size_t len,
                  const void *op_context);
int rpma_srq_recv_many(struct rpma_srq *srq, const struct rpma_receive *receives,
                       uint32_t count, uint32_t *posted);
const char *rpma_utils_conn_event_2str(enum rpma_conn_event conn_event);
int rpma_utils_get_ibv_context(const char *addr, enum rpma_util_ibv_context_type type,
                               struct ibv_context **ibv_ctx_ptr);
int rpma_utils_ibv_context_is_odp_capable(struct ibv_context *ibv_ctx, int *is_odp_capable);
uint32_t rpma_version(void);
int rpma_write(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
               const struct rpma_mr_local *src, size_t src_offset, size_t len, int flags,
               const void *op_context);
int rpma_write_atomic(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
                      const struct rpma_mr_local *src, size_t src_offset, int flags,
                      const void *op_context);
int rpma_write_with_imm(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
                        const struct rpma_mr_local *src, size_t src_offset, size_t len,
                        int flags, uint32_t imm, const void *op_context);
