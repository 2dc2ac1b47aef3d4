// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// flush_target.cc -- one registration per peer, created on first use

#include "core/flush_target.hh"

#include <sys/mman.h>

#include "base/lock.hh"
#include "core/peer.hh"

namespace rpma {

// munmap() rounds the size up to whole pages.
void FlushTarget::Unmap::operator()(void *page) const {
    munmap(page, FLUSH_READ_SIZE);
}

bool FlushTarget::prepare(Call &call, const rpma_peer &peer) {
    if (!page_) {
        void *page = mmap(nullptr, FLUSH_READ_SIZE, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED) {
            RPMA_FAIL(call, RPMA_E_NOMEM, 0, "out of memory: mmap() of %u bytes for flushes",
                      FLUSH_READ_SIZE);
            return false;
        }
        page_.reset(page);
    }
    mr_ = peer.register_memory(call, page_.get(), FLUSH_READ_SIZE, RPMA_MR_USAGE_READ_DST);
    return mr_ != nullptr;
}

const rpma_mr_local *FlushTarget::acquire(Call &call, const rpma_peer &peer) {
    Lock lock(mutex_);
    if (!mr_ && !prepare(call, peer))
        return nullptr;
    users_++;
    return mr_.get();
}

void FlushTarget::remove_user() {
    Lock lock(mutex_);
    users_--;
}

bool FlushTarget::try_release(Call &call) {
    Lock lock(mutex_);
    if (users_ > 0) {
        RPMA_FAIL(call, RPMA_E_PROVIDER, EBUSY, "deleting the peer before its connections (%u)",
                  users_);
        return false;
    }
    if (mr_ && !mr_->try_release(call))
        return false;
    mr_.reset();
    return true;
}

} // namespace rpma
