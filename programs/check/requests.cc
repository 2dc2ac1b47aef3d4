// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// requests.cc -- the properties of sim/device/devices.tsv that posts on a connection show:
// what the driver refuses, and by which error. librpma refuses most of these requests itself.

#include "../info/info.hh"
#include "device_description.hh"
#include "questions.hh"

#include <array>
#include <cerrno>
#include <cstring>

namespace {

constexpr size_t SGES = 128; // more than a queue pair of few SGEs has on any device

// A connection whose queue pair may fail.
class Posts {
  public:
    Posts(Session &of, const Json &settings = Json::object())
        : session_(of), c_(of.open(settings)), sge_(sge_of(*c_, 0, 8)) {}
    Posts(const Posts &) = delete;
    ~Posts() {
        try {
            session_.close(*c_);
        } catch (const std::exception &) { // the other side has ended
        }
    }

    // A signaled request of one SGE.
    ibv_send_wr request(ibv_wr_opcode opcode) {
        return request_of(*c_, opcode, std::span(&sge_, 1));
    }
    int post(ibv_send_wr &wr) { return ibv_post_send(qp(), &wr, &bad); }
    // Returns the result for a request that is changed.
    int post_changed(ibv_wr_opcode opcode, auto change) {
        ibv_send_wr wr = request(opcode);
        change(wr);
        return post(wr);
    }
    // More SGEs than the queue pair has.
    std::array<ibv_sge, SGES> many() const {
        std::array<ibv_sge, SGES> all;
        all.fill(sge_);
        return all;
    }
    ibv_qp *qp() const { return c_->conn.get_ibv_qp(); }
    Connection &connection() const { return *c_; }

    ibv_send_wr *bad = nullptr;

  private:
    Session &session_;
    const std::unique_ptr<Connection> c_;
    ibv_sge sge_;
};

// Some drivers return negative numbers.
std::string name_of(int result) {
    return result == -1 ? "-1" : result < 0 ? "-" + error_name(-result) : error_name(result);
}

int post_many(Posts &&posts) {
    auto all = posts.many();
    return posts.post_changed(IBV_WR_RDMA_WRITE, [&](ibv_send_wr &wr) {
        wr.sg_list = all.data();
        wr.num_sge = SGES;
    });
}

int receive_many(const Posts &posts, ibv_srq *srq) {
    auto all = posts.many();
    ibv_recv_wr wr{}, *bad = nullptr;
    wr.sg_list = all.data();
    wr.num_sge = SGES;
    return srq ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(posts.qp(), &wr, &bad);
}

// A good request and one with too many SGEs in a list.
bool hides_refusals(Posts &&posts) {
    ibv_send_wr first = posts.request(IBV_WR_RDMA_WRITE), second = first;
    auto all = posts.many();
    second.sg_list = all.data();
    second.num_sge = SGES;
    first.next = &second;
    return posts.post(first) == 0 && posts.bad == &second;
}

// An unsignaled request, and after its execution one with a wrong key: the completion is that
// of the first.
bool fails_oldest(Session &session) {
    Posts posts(session);
    const std::string data = "executed";
    std::memcpy(posts.connection().memory.at(0), data.data(), data.size());
    ibv_send_wr first = posts.request(IBV_WR_RDMA_WRITE), second = first;
    first.send_flags = 0;
    first.wr_id = 1;
    second.wr_id = 2;
    ibv_sge wrong = *second.sg_list;
    wrong.lkey ^= 0xff00;
    second.sg_list = &wrong;
    if (posts.post(first) != 0)
        return false;
    for (const Clock clock; session.peek(0, data.size()) != data && clock.wait(5);)
        ;
    if (posts.post(second) != 0)
        return false;
    const auto found = posts.connection().take(1);
    return !found.empty() && found[0].wr_id == 1;
}

void ask_atomics(Session &session, Json &found) {
    const auto is_refused = [&](auto change) {
        return Posts(session).post_changed(IBV_WR_ATOMIC_FETCH_AND_ADD, change) != 0;
    };
    if (is_refused([](ibv_send_wr &) {}))
        return;
    const bool checks_address =
        is_refused([](ibv_send_wr &wr) { wr.wr.atomic.remote_addr += 4; });
    found["checks_atomics"] = checks_address;
    found["checks_atomic_length"] =
        !checks_address && is_refused([](ibv_send_wr &wr) { wr.sg_list->length = 4; });
    try {
        Posts posts(session, {{"sge", 2}});
        std::array<ibv_sge, SGES> all = posts.many();
        found["atomics_need_one_sge"] =
            posts.post_changed(IBV_WR_ATOMIC_FETCH_AND_ADD, [&](ibv_send_wr &wr) {
                wr.sg_list = all.data();
                wr.num_sge = 2;
            }) != 0;
    } catch (const rpma::error &) { // the device has queue pairs with one SGE
    }
}

} // namespace

Json request_attributes(Session &session) {
    const int refusal = post_many(Posts(session));
    Json found = {{"sge_error", name_of(refusal)}};
    if (refusal != 0)
        found["hides_refusals"] = hides_refusals(Posts(session));
    const int of_inline = Posts(session).post_changed(IBV_WR_RDMA_WRITE, [](ibv_send_wr &wr) {
        wr.sg_list->length = 60000;
        wr.send_flags |= IBV_SEND_INLINE;
    });
    found["inline_error"] = name_of(of_inline);
    Posts posts(session);
    ibv_send_wr good = posts.request(IBV_WR_RDMA_WRITE), other{};
    posts.bad = &other;
    found["keeps_bad_wr"] = posts.post(good) == 0 && posts.bad == &other;
    found["fails_oldest"] = fails_oldest(session);
    ask_atomics(session, found);
    // The property is 0 if the error is that of other invalid receives.
    const int of_receive = receive_many(posts, nullptr);
    found["receive_sge_error"] =
        of_receive == EINVAL || of_receive == -EINVAL ? "0" : name_of(of_receive);
    ibv_srq_init_attr attr{};
    attr.attr = {4, 1, 0};
    const Owned<ibv_srq, ibv_destroy_srq> srq(ibv_create_srq(session.peer.get_ibv_pd(), &attr));
    if (srq) {
        const int of_srq = receive_many(posts, srq.get());
        found["srq_error"] = of_srq == of_receive ? "0" : name_of(of_srq);
    }
    return found;
}
