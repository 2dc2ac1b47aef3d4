// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// flush_target.cc -- one registration per peer, made on first need

#include "core/flush_target.hh"

#include <sys/mman.h>

#include "core/mr.hh"
#include "core/peer.hh"

namespace rpma {

namespace {

class Lock {
  public:
    explicit Lock(pthread_mutex_t &mutex) : mutex_(mutex) { pthread_mutex_lock(&mutex_); }
    Lock(const Lock &) = delete;
    ~Lock() { pthread_mutex_unlock(&mutex_); }

  private:
    pthread_mutex_t &mutex_;
};

} // namespace

// The kernel unmaps at least the page that holds these bytes.
void FlushTarget::Unmap::operator()(void *page) const {
    munmap(page, FLUSH_READ_SIZE);
}

Status FlushTarget::prepare(const rpma_peer &peer) {
    if (!page_) {
        void *page = mmap(nullptr, FLUSH_READ_SIZE, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED)
            return out_of_memory();
        page_.reset(page);
    }
    auto mr = peer.register_memory(page_.get(), FLUSH_READ_SIZE, RPMA_MR_USAGE_READ_DST);
    if (!mr)
        return fail(mr.error());
    mr_ = std::move(*mr);
    return {};
}

Result<const rpma_mr_local *> FlushTarget::acquire(const rpma_peer &peer) {
    Lock lock(mutex_);
    if (!mr_) {
        Status status = prepare(peer);
        if (!status)
            return fail(status.error());
    }
    users_++;
    return mr_.get();
}

void FlushTarget::release() {
    Lock lock(mutex_);
    users_--;
}

Status FlushTarget::close() {
    Lock lock(mutex_);
    if (users_ > 0)
        return fail({RPMA_E_PROVIDER, "connections still use the peer", EBUSY});
    if (!mr_)
        return {};
    Status status = mr_->close();
    if (status)
        mr_.reset();
    return status;
}

} // namespace rpma
