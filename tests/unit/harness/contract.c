// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// contract.c -- reads contract/errors.tsv and notes the exercised rows.

#include "contract.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error_codes.h"
#include "librpma.h"

static const struct {
    const char *name;
    int code;
} codes[] = {{"0", 0},
#define NAMED(code, text, is_failure) {#code, code},
             RPMA_ERROR_CODES(NAMED)};

enum { MAX_ROWS = 1000 };

static struct contract_row rows[MAX_ROWS];
static size_t row_count;
static FILE *notes;

const char *contract_code_name(int code) {
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (codes[i].code == code)
            return codes[i].name;
    return "no code of librpma";
}

static void broken(const char *what) {
    fprintf(stderr, "%s: %s: repair the file, contract/README.md describes it\n",
            CONTRACT_ERRORS, what);
    exit(1);
}

static void add_row(char *line) {
    char *functions = strsep(&line, "\t");
    struct contract_row row = {.code = 1};
    row.code_name = strsep(&line, "\t");
    row.condition = strsep(&line, "\t");
    row.decision = strsep(&line, "\t");
    if (!line)
        broken(functions);
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (strcmp(codes[i].name, row.code_name) == 0)
            row.code = codes[i].code;
    while ((row.function = strsep(&functions, " "))) {
        if (row.code == 1 || row_count == MAX_ROWS)
            broken(row.function);
        rows[row_count++] = row;
    }
}

const struct contract_row *contract_rows(size_t *count) {
    if (row_count == 0) {
        static char text[256 * 1024];
        FILE *file = fopen(CONTRACT_ERRORS, "r");
        if (!file)
            broken("cannot be opened");
        text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
        fclose(file);
        char *rest = text;
        strsep(&rest, "\n"); // the names of the columns
        for (char *line; (line = strsep(&rest, "\n"));)
            if (*line)
                add_row(line);
    }
    *count = row_count;
    return rows;
}

const struct contract_row *contract_find(const char *function, int code, const char *part,
                                         const char **why) {
    size_t count;
    const struct contract_row *all = contract_rows(&count);
    const struct contract_row *found = NULL;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(all[i].function, function) != 0 || all[i].code != code ||
            !strstr(all[i].condition, part))
            continue;
        if (strcmp(all[i].condition, part) == 0)
            return &all[i];
        if (found) {
            *why = "several rows contain that condition: give more of it";
            return NULL;
        }
        found = &all[i];
    }
    *why = "contract/errors.tsv has no such row";
    return found;
}

bool contract_documents(const char *function, int code) {
    size_t count;
    const struct contract_row *all = contract_rows(&count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(all[i].function, function) == 0 && all[i].code == code &&
            strcmp(all[i].decision, "never") != 0)
            return true;
    return false;
}

void contract_open_notes(const char *name) {
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s.tsv", NOTES_DIRECTORY, name);
    notes = fopen(path, "w");
    if (!notes) {
        fprintf(stderr, "%s cannot be written: build again\n", path);
        exit(1);
    }
}

void contract_close_notes(void) {
    fprintf(notes, "complete\n");
    fclose(notes);
    notes = NULL;
}

void contract_exercised(const struct contract_row *row, const char *cause, int error) {
    if (!notes)
        return;
    fprintf(notes, "%s\t%s\t%s\t%s\t%s\n", row->function, row->code_name, row->condition, cause,
            error ? strerrorname_np(error) : "");
    fflush(notes);
}
