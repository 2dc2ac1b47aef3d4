// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// list.c -- memory lists in the words of a command

#include <stdlib.h>

#include "operation.h"

static size_t next_number(const struct args *args, char **text, char end) {
    char *start = *text;
    size_t number = strtoull(start, text, 0);
    if (*text == start || (**text != end && **text != '\0'))
        bad_script("%s: sgl= is no list of memory:offset:length", args->verb);
    if (**text == end)
        ++*text;
    return number;
}

int read_pieces(const struct args *args, struct piece *pieces) {
    char *text = (char *)arg_text_or(args, "sgl", "");
    int count = 0;
    while (*text != '\0') {
        if (count == MAX_ELEMENTS)
            bad_script("%s: more than %d elements", args->verb, MAX_ELEMENTS);
        struct piece *piece = &pieces[count++];
        if (text[0] == '-' && text[1] == ':') {
            piece->memory = MAX_REGIONS;
            text += 2;
        } else {
            piece->memory = next_number(args, &text, ':');
        }
        piece->offset = next_number(args, &text, ':');
        piece->len = next_number(args, &text, ',');
        if (piece->memory > MAX_REGIONS)
            bad_script("%s: no such memory in sgl=", args->verb);
    }
    return count;
}

const struct rpma_sge *read_list(const struct args *args, struct rpma_sge *elements,
                                 uint32_t *nsge) {
    static struct piece pieces[MAX_ELEMENTS];
    int count = read_pieces(args, pieces);
    for (int i = 0; i < count; i++) {
        struct rpma_mr_local *mr =
            pieces[i].memory < MAX_REGIONS ? world.mr[pieces[i].memory] : NULL;
        elements[i] = (struct rpma_sge){mr, pieces[i].offset, pieces[i].len};
    }
    *nsge = (uint32_t)arg_number_or(args, "nsge", (uint64_t)count);
    return count > 0 ? elements : NULL;
}
