// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// contract.h -- the rows of contract/errors.tsv, and which of them were exercised.

#ifndef CONTRACT_H
#define CONTRACT_H 1

#include <stdbool.h>
#include <stddef.h>

struct contract_row {
    const char *function;
    const char *code_name;
    int code;
    const char *condition;
    const char *decision;
};

// All rows, in the order of the file; read on first use. Ends the program if it cannot be read.
const struct contract_row *contract_rows(size_t *count);
// The only row of that function and code whose condition contains part; otherwise NULL, and
// *why is the remedy.
const struct contract_row *contract_find(const char *function, int code, const char *part,
                                         const char **why);
// Is true if the function may return that code.
bool contract_documents(const char *function, int code);
// "RPMA_E_INVAL" for the value; "0" for success.
const char *contract_code_name(int code);

// Notes that the row happened, by that cause and errno (0: none). The check that runs after all
// tests reads the notes.
void contract_exercised(const struct contract_row *row, const char *cause, int error);
// Opens and closes the file of the notes of this executable; after a crash it has no end mark.
void contract_open_notes(const char *name);
void contract_close_notes(void);

#endif // CONTRACT_H
