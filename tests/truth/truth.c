// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// truth.c -- asks libibverbs and librdmacm what they answer, and prints a line per question:
// the question, a tab, the answer. Over the fakes and on a real device the answers have to be
// the same; README.md says how they are compared.

#include "truth.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sockaddr_in own_address;

static void print(const char *question, const char *answer) {
    printf("%s\t%s\n", question, answer);
}

static const char *name_of(int error) {
    const char *name = strerrorname_np(error < 0 ? -error : error);
    return name ? name : "?";
}

// An answer of the kind "-1 and errno".
void says(const char *question, int ret) {
    char answer[64];
    if (ret == -1)
        snprintf(answer, sizeof(answer), "-1 %s", name_of(errno));
    else
        snprintf(answer, sizeof(answer), "%d", ret);
    print(question, answer);
}

// An answer of the kind "error number".
void returns(const char *question, int ret) {
    print(question, ret == 0 ? "0" : ret < 0 ? "negative" : name_of(ret));
}

// An answer of the kind "object, or NULL and errno".
void makes(const char *question, const void *object) {
    char answer[64];
    snprintf(answer, sizeof(answer), "%s%s", object ? "made" : "NULL ",
             object ? "" : name_of(errno));
    print(question, answer);
}

void is(const char *question, long long value) {
    char answer[64];
    snprintf(answer, sizeof(answer), "%lld", value);
    print(question, answer);
}

void is_not_asked(const char *question) {
    print(question, "not asked");
}

void must(bool good, const char *what) {
    if (good)
        return;
    fprintf(stderr, "truth: %s failed: %s, so the questions after it cannot be asked\n", what,
            strerror(errno));
    exit(1);
}

struct sockaddr_in address_of(const char *text) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    must(inet_pton(AF_INET, text, &address.sin_addr) == 1, text);
    return address;
}

static const struct subject {
    const char *name;
    void (*ask)(void);
} subjects[] = {
    {"address", ask_addresses},
    {"cm", ask_cm},
    {"device", ask_device},
    {"mr", ask_mr},
    {"cq", ask_cq},
    {"srq", ask_srq},
    {"qp", ask_qp},
    {"order", ask_order},
    {"connection", ask_connection},
};

int main(int argc, char *argv[]) {
    const bool as_siw = prepare_fakes && argc == 3 && strcmp(argv[2], "siw") == 0;
    if (argc != 2 + as_siw) {
        fprintf(stderr, "usage: truth ADDRESS (of an RDMA device of this machine)\n"
                        "       truth-fakes ADDRESS [siw]\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    own_address = address_of(argv[1]);
    if (prepare_fakes)
        prepare_fakes(as_siw);
    for (size_t i = 0; i < sizeof(subjects) / sizeof(subjects[0]); i++)
        subjects[i].ask();
    return 0;
}
