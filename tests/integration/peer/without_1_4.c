// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

/*
 * without_1_4.c -- replaces each function that is new in 1.4, so that the program starts with
 * the original's library as well; Meson passes their names
 */

#include <librpma.h>

int without_1_4(void);

int without_1_4(void) {
    return RPMA_E_NOSUPP;
}
