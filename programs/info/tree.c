// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// tree.c -- makes and reads the report

#include "tree.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "info.h"

static void *need(void *made) {
    if (made == NULL) {
        fputs("rpma-info: out of memory\n", stderr);
        exit(STATUS_FAILED);
    }
    return made;
}

static char *formatted(const char *format, va_list values)
    __attribute__((format(printf, 1, 0)));

static char *formatted(const char *format, va_list values) {
    char *text = NULL;
    return need(vasprintf(&text, format, values) < 0 ? NULL : text);
}

char *text_of(const char *format, ...) {
    va_list values;
    va_start(values, format);
    char *text = formatted(format, values);
    va_end(values);
    return text;
}

tree *tree_new(void) {
    return need(json_object_new_object());
}

static void add(tree *parent, const char *key, tree *value) {
    if (json_object_object_add(parent, key, value) != 0)
        need(NULL);
}

tree *add_object(tree *parent, const char *key) {
    tree *made = tree_new();
    add(parent, key, made);
    return made;
}

tree *add_list(tree *parent, const char *key) {
    tree *made = need(json_object_new_array());
    add(parent, key, made);
    return made;
}

tree *append_object(tree *list) {
    tree *made = tree_new();
    if (json_object_array_add(list, made) != 0)
        need(NULL);
    return made;
}

void add_bool(tree *parent, const char *key, bool value) {
    add(parent, key, need(json_object_new_boolean(value)));
}

void add_number(tree *parent, const char *key, uint64_t value) {
    add(parent, key, need(json_object_new_uint64(value)));
}

void add_null(tree *parent, const char *key) {
    add(parent, key, NULL);
}

void add_text(tree *parent, const char *key, const char *format, ...) {
    va_list values;
    va_start(values, format);
    char *text = formatted(format, values);
    va_end(values);
    add(parent, key, need(json_object_new_string(text)));
    free(text);
}

void add_yes(tree *parent, const char *key) {
    add_bool(add_object(parent, key), "is", true);
}

static void add_reason(tree *answer, char *why, char *help) {
    add_text(answer, "why", "%s", why);
    add_text(answer, "help", "%s", help);
    free(why);
    free(help);
}

void add_no(tree *parent, const char *key, char *why, char *help) {
    tree *answer = add_object(parent, key);
    add_bool(answer, "is", false);
    add_reason(answer, why, help);
}

void add_unknown(tree *parent, const char *key, char *why, char *help) {
    tree *answer = add_object(parent, key);
    add_null(answer, "is");
    add_reason(answer, why, help);
}

tree *child(const tree *parent, const char *key) {
    tree *found = NULL;
    return json_object_object_get_ex(parent, key, &found) ? found : NULL;
}

const char *text_at(const tree *parent, const char *key) {
    tree *found = child(parent, key);
    return found == NULL ? "" : json_object_get_string(found);
}

uint64_t number_at(const tree *parent, const char *key) {
    return json_object_get_uint64(child(parent, key));
}

bool is_yes(const tree *parent, const char *key) {
    const tree *answer = child(parent, key);
    return answer != NULL && json_object_get_boolean(child(answer, "is"));
}
