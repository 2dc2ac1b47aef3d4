// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// random.cc -- prints what differs between two runs of a program, unless explore controls it

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <fcntl.h>
#include <fstream>
#include <random>
#include <sys/auxv.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

namespace {

void print(const char *name, const void *bytes, size_t size) {
    printf("%s:", name);
    for (size_t i = 0; i < size; i++)
        printf(" %02x", static_cast<const unsigned char *>(bytes)[i]);
    printf("\n");
}

void print_threads() {
    printf("gettid: %d %ld\n", gettid(), syscall(SYS_gettid));
}

} // namespace

int main() {
    char bytes[8];
    if (getrandom(bytes, sizeof(bytes), 0) == sizeof(bytes))
        print("getrandom", bytes, sizeof(bytes));
    if (getentropy(bytes, sizeof(bytes)) == 0)
        print("getentropy", bytes, sizeof(bytes));
    for (const char *const path : {"/dev/urandom", "/dev/random"}) {
        const int fd = open(path, O_RDONLY);
        if (read(fd, bytes, sizeof(bytes)) == sizeof(bytes))
            print(path, bytes, sizeof(bytes));
        close(fd);
        std::ifstream stream(path, std::ios::binary);
        if (stream.rdbuf()->pubsetbuf(nullptr, 0); stream.read(bytes, sizeof(bytes)))
            print("std::ifstream", bytes, sizeof(bytes));
        FILE *const file = fopen(path, "r");
        if (file != nullptr && fread(bytes, 1, sizeof(bytes), file) == sizeof(bytes))
            print("fread", bytes, sizeof(bytes));
        fclose(file);
    }
    char file[] = "file-XXXXXX.txt", folder[] = "folder-XXXXXX";
    if (const int fd = mkstemps(file, 4); close(fd) == 0 && unlink(file) == 0)
        printf("mkstemps: %s\n", file);
    if (mkdtemp(folder) != nullptr && rmdir(folder) == 0)
        printf("mkdtemp: %s\n", folder);
    if (auto *const function =
            reinterpret_cast<uint32_t (*)()>(dlsym(RTLD_DEFAULT, "arc4random"))) {
        const uint32_t value = function(); // glibc 2.36
        print("arc4random", &value, sizeof(value));
    }
    std::random_device device;
    printf("std::random_device: %u %u\n", device(), device());
    print("AT_RANDOM", reinterpret_cast<const void *>(getauxval(AT_RANDOM)), 16);
    printf("addresses: %p %p %p %p\n", static_cast<void *>(&device), malloc(100),
           malloc(1 << 20), reinterpret_cast<void *>(&print));
    print_threads();
    std::thread(print_threads).join();
    printf("getpid: %d %d\n", getpid(), getppid());
}
