// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// json.c -- settings and results as JSON; rpma-perf.schema.json describes it

#include "failure.h"
#include "result.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct json_report {
    struct json_object *root, *results;
};

static void add_text(struct json_object *object, const char *key, const char *value) {
    json_object_object_add(object, key, json_object_new_string(value));
}

static void add_number(struct json_object *object, const char *key, uint64_t value) {
    json_object_object_add(object, key, json_object_new_uint64(value));
}

static void add_figure(struct json_object *object, const char *key, double value) {
    char text[32];
    snprintf(text, sizeof(text), "%.3f", value);
    json_object_object_add(object, key, json_object_new_double_s(value, text));
}

static void add_object(struct json_object *object, const char *key, struct json_object *value) {
    json_object_object_add(object, key, value);
}

static void add_date(struct json_object *root) {
    char text[32];
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
    add_text(root, "date", text);
}

static struct json_object *settings_of(const struct options *options) {
    struct json_object *object = json_object_new_object();
    for (size_t i = 0; i < setting_count; i++) {
        const struct setting *setting = &settings[i];
        uint64_t value = plan_value(&options->plan, setting);
        if (!strcmp(setting->name, "operation") || !strcmp(setting->name, "size") ||
            !strcmp(setting->name, "ring"))
            continue; // each result has the first two; with a ring there is no JSON
        if (setting->max == 1)
            add_object(object, setting->name, json_object_new_boolean(value != 0));
        else
            add_number(object, setting->name, value);
    }
    add_number(object, "warmup", options->limits.warmup);
    if (options->limits.count)
        add_number(object, "count", options->limits.count);
    else
        add_figure(object, "duration_s", (double)options->limits.duration_ns / 1e9);
    return object;
}

static struct json_object *object_of_side(const struct side *side) {
    struct json_object *object = json_object_new_object();
    add_text(object, "librpma", side->librpma);
    add_text(object, "kernel", side->kernel);
    add_text(object, "device", side->device);
    add_text(object, "memory", side->memory);
    return object;
}

struct json_report *json_begin(const struct options *options, const struct side *client,
                               const struct side *server) {
    struct json_report *report = calloc(1, sizeof(*report));
    if (!report) {
        fail("out of memory");
        return NULL;
    }
    char version[16];
    snprintf(version, sizeof(version), "%d.%d.%d", RPMA_VERSION_MAJOR, RPMA_VERSION_MINOR,
             RPMA_VERSION_PATCH);
    report->root = json_object_new_object();
    report->results = json_object_new_array();
    add_text(report->root, "rpma_perf", version);
    add_number(report->root, "protocol", PROTOCOL);
    add_date(report->root);
    add_text(report->root, "address", options->address);
    add_text(report->root, "port", options->port);
    add_object(report->root, "client", object_of_side(client));
    add_object(report->root, "server", object_of_side(server));
    add_object(report->root, "direct_write_stated",
               json_object_new_boolean(server->direct_write));
    add_object(report->root, "settings", settings_of(options));
    add_object(report->root, "results", report->results);
    return report;
}

static struct json_object *latency_of(const struct result *result) {
    struct json_object *object = json_object_new_object();
    add_figure(object, "min", result->latency.count ? (double)result->latency.min / 1000 : 0);
    add_figure(object, "mean", histogram_mean(&result->latency) / 1000);
    add_figure(object, "median", result_us(result, 0.5));
    add_figure(object, "p90", result_us(result, 0.9));
    add_figure(object, "p99", result_us(result, 0.99));
    add_figure(object, "p99_9", result_us(result, 0.999));
    add_figure(object, "max", (double)result->latency.max / 1000);
    return object;
}

static struct json_object *cpu_of(const struct result *result) {
    struct json_object *object = json_object_new_object();
    add_figure(object, "client", result_cpu_us(result, result->client_cpu_ns));
    add_figure(object, "server", result_cpu_us(result, result->server_cpu_ns));
    return object;
}

void json_add(struct json_report *report, const struct result *result) {
    struct json_object *object = json_object_new_object();
    add_text(object, "operation", operations[result->operation].name);
    add_number(object, "size", result->size);
    add_number(object, "operations", result->operations);
    add_figure(object, "seconds", result->seconds);
    add_object(object, "latency_us", latency_of(result));
    add_figure(object, "operations_per_second", result_rate(result));
    add_figure(object, "bandwidth_mib_per_second", result_bandwidth(result));
    add_object(object, "cpu_us_per_operation", cpu_of(result));
    add_object(object, "verified", json_object_new_boolean(result->is_verified));
    add_text(object, "persistence", result_is_persistent(result) ? "stated" : "not stated");
    json_object_array_add(report->results, object);
}

bool json_end(struct json_report *report) {
    if (!report)
        return true;
    const char *text = json_object_to_json_string_ext(
        report->root, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED);
    bool is_written = text && puts(text) >= 0 && !fflush(stdout);
    json_drop(report);
    return is_written || fail("cannot write the JSON");
}

void json_drop(struct json_report *report) {
    if (!report)
        return;
    json_object_put(report->root);
    free(report);
}
