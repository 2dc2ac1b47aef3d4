// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

/*
 * without_1_4.c -- replaces each function that was added in 1.4, so that the program also
 * starts with the original's library; Meson passes the names
 */

#include <librpma.h>

int without_1_4(void);

int without_1_4(void) {
    return RPMA_E_NOSUPP;
}
