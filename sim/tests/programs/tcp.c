// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// tcp.c -- a program of TCP sockets, which librspreload.so replaces by rsockets
//
// usage: tcp           receives a line and prints it with the packets of the RDMA device
//        tcp ADDRESS   sends a line

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static void must(int succeeded, const char *call) {
    if (!succeeded) {
        perror(call);
        exit(1);
    }
}

int main(int argc, char **argv) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(5000)};
    char line[100] = "sent by TCP\n", packets[20];
    const int made = socket(AF_INET, SOCK_STREAM, 0);
    must(made >= 0, "socket");
    if (argc > 1) {
        inet_pton(AF_INET, argv[1], &address.sin_addr);
        must(!connect(made, (struct sockaddr *)&address, sizeof(address)), "connect");
        must(write(made, line, sizeof(line)) == sizeof(line), "write");
        must(read(made, line, sizeof(line)) == 0, "read"); // until the server has printed
        return 0;
    }
    must(!bind(made, (struct sockaddr *)&address, sizeof(address)), "bind");
    must(!listen(made, 1), "listen");
    const int peer = accept(made, NULL, NULL);
    must(peer >= 0, "accept");
    must(read(peer, line, sizeof(line)) == sizeof(line), "read");
    FILE *const counter =
        fopen("/sys/class/infiniband/rxe0/ports/1/hw_counters/rcvd_pkts", "r");
    must(counter && fgets(packets, sizeof(packets), counter), "counter");
    printf("%s%s", line, packets);
    close(peer);
    return 0;
}
