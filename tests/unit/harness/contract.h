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
// The only row of that function and code whose condition contains part. If there is none, or
// more than one, returns NULL, and sets *why to advice.
const struct contract_row *contract_find(const char *function, int code, const char *part,
                                         const char **why);
// Returns whether the function may return that code.
bool contract_documents(const char *function, int code);
// "RPMA_E_INVAL" for the value; "0" for success.
const char *contract_code_name(int code);

// Notes that a test provoked the row, by that cause and errno (0: none). exercised.py reads
// the notes after all tests.
void contract_exercised(const struct contract_row *row, const char *cause, int error);
// Open and close the file with the notes of this executable. After a crash the file has no end
// mark.
void contract_open_notes(const char *name);
void contract_close_notes(void);

#endif // CONTRACT_H
