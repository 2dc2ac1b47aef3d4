// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// ring.c -- each rank of MPI sends messages to the next one, and writes into its memory

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char *argv[]) {
    int rank, size, sum = 0, *written, length;
    char name[MPI_MAX_PROCESSOR_NAME];
    MPI_Win window;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    for (int bytes = 4; bytes <= 4 << 20; bytes *= 16) {
        unsigned char *const out = malloc(bytes), *const in = malloc(bytes);
        for (int i = 0; i < bytes; i++)
            out[i] = (unsigned char)(i * 7 + rank);
        MPI_Sendrecv(out, bytes, MPI_BYTE, next, 0, in, bytes, MPI_BYTE, previous, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < bytes; i++)
            if (in[i] != (unsigned char)(i * 7 + previous))
                MPI_Abort(MPI_COMM_WORLD, 1);
        free(out);
        free(in);
    }
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Win_allocate(sizeof(*written), sizeof(*written), MPI_INFO_NULL, MPI_COMM_WORLD,
                     &written, &window);
    *written = -1;
    MPI_Win_fence(0, window);
    MPI_Put(&rank, 1, MPI_INT, next, 0, 1, MPI_INT, window);
    MPI_Win_fence(0, window);
    MPI_Get_processor_name(name, &length);
    printf("rank %d on %s: sum %d, written %d\n", rank, name, sum, *written);
    MPI_Win_free(&window);
    return MPI_Finalize();
}
