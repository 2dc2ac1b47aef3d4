// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// allreduce.cc -- adds numbers of two processes with Gloo over verbs: allreduce DEVICE RANK
// DIRECTORY

#include <gloo/allreduce_ring.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>

#include <cstdio>
#include <cstdlib>
#include <string>

int main(int argc, char *argv[]) {
    if (argc != 4)
        return 2;
    const int rank = atoi(argv[2]);
    // RoCE: the GID of the IPv4 address.
    std::shared_ptr<gloo::transport::Device> device =
        gloo::transport::ibverbs::CreateDevice({argv[1], 1, 1});
    gloo::rendezvous::FileStore store(argv[3]);
    const auto context = std::make_shared<gloo::rendezvous::Context>(rank, 2);
    context->connectFullMesh(store, device);
    std::vector<int> numbers(100'000, rank + 1);
    // Its destructor requires completions for which no function waits.
    (new gloo::AllreduceRing<int>(context, {numbers.data()}, static_cast<int>(numbers.size())))
        ->run();
    for (const int number : numbers)
        if (number != 3)
            return 1;
    printf("rank %d: each number is %d\n", rank, numbers[0]);
    fflush(stdout);
    // The last message may still be in transit.
    store.set("done" + std::to_string(rank), {'1'});
    store.wait({"done0", "done1"});
    _Exit(0);
}
