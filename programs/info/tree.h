// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// tree.h -- the report: a tree of JSON objects, from which the text is made as well
//
// An answer is an object: "is" is true, false, or null where it cannot be known. Unless "is" is
// true, "why" has the reason and "help" a remedy. The program ends when memory runs out.

#pragma once

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct json_object tree;

__attribute__((format(printf, 1, 2))) char *text_of(const char *format, ...);

tree *tree_new(void);
tree *add_object(tree *parent, const char *key);
tree *add_list(tree *parent, const char *key);
tree *append_object(tree *list);
void add_bool(tree *parent, const char *key, bool value);
void add_number(tree *parent, const char *key, uint64_t value);
void add_null(tree *parent, const char *key);
__attribute__((format(printf, 3, 4))) void add_text(tree *parent, const char *key,
                                                    const char *format, ...);

void add_yes(tree *parent, const char *key);
/* Frees both texts. */
void add_no(tree *parent, const char *key, char *why, char *help);
void add_unknown(tree *parent, const char *key, char *why, char *help);

tree *child(const tree *parent, const char *key);
/* The text at key; "" when there is none. */
const char *text_at(const tree *parent, const char *key);
uint64_t number_at(const tree *parent, const char *key);
bool is_yes(const tree *parent, const char *key);
