// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// openmp.c -- threads of OpenMP, whose library makes system calls of its own; "wrong": they
// add to a variable without a lock

#include <infiniband/verbs.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    (void)argv;
    const int is_wrong = argc > 1;
    struct ibv_device **const devices = ibv_get_device_list(NULL);
    struct ibv_context *const context = ibv_open_device(devices[0]);
    int count = 0, sum = 0;
#pragma omp parallel num_threads(3)
    {
        struct ibv_pd *const pd = ibv_alloc_pd(context);
        if (is_wrong) {
            const int before = count;
            ibv_dealloc_pd(pd);
            count = before + 1;
        } else {
#pragma omp critical
            {
                const int before = count;
                ibv_dealloc_pd(pd);
                count = before + 1;
            }
        }
#pragma omp barrier
        if (count != 3)
            exit(EXIT_FAILURE);
    }
#pragma omp parallel for reduction(+ : sum) schedule(dynamic) num_threads(3)
    for (int i = 0; i < 10; i++)
        sum += i;
    return sum != 45;
}
