// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// log.cc -- the default log function: syslog, with a copy on stderr when wanted

#include "base/log.hh"

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <sys/syscall.h>
#include <syslog.h>
#include <unistd.h>

namespace rpma::log {

namespace {

#ifdef DEBUG
constexpr rpma_log_level START = RPMA_LOG_LEVEL_DEBUG;
constexpr rpma_log_level START_AUX = RPMA_LOG_LEVEL_WARNING;
#else
constexpr rpma_log_level START = RPMA_LOG_LEVEL_WARNING;
constexpr rpma_log_level START_AUX = RPMA_LOG_DISABLED;
#endif

struct Severity {
    int syslog;
    const char *tag;
};

constexpr Severity severities[] = {
    {LOG_CRIT, "FATAL"},    {LOG_ERR, "ERROR"}, {LOG_WARNING, "WARNING"},
    {LOG_NOTICE, "NOTICE"}, {LOG_INFO, "INFO"}, {LOG_DEBUG, "DEBUG"},
};

// Longer messages and locations are cut, as they always were.
constexpr std::size_t MESSAGE_SIZE = 1024;
constexpr std::size_t LOCATION_SIZE = 256;

// "Nov 20 21:51:00.123456", or nothing when the clock cannot be read.
void local_time(char *text, std::size_t size) {
    timespec now;
    tm parts;
    text[0] = '\0';
    if (clock_gettime(CLOCK_REALTIME, &now) != 0 || localtime_r(&now.tv_sec, &parts) == nullptr)
        return;
    std::size_t used = std::strftime(text, size, "%b %d %H:%M:%S", &parts);
    std::snprintf(text + used, size - used, ".%06ld", now.tv_nsec / 1000);
}

void to_stderr(const Severity &severity, const char *location, const char *message) {
    char time[64];
    local_time(time, sizeof(time));
    std::fprintf(stderr, "%s [%ld] %s: %s%s", time, syscall(SYS_gettid), severity.tag, location,
                 message);
}

[[gnu::format(printf, 5, 6)]] void default_function(rpma_log_level level, const char *file_name,
                                                    const int line_no,
                                                    const char *function_name,
                                                    const char *message_format, ...) {
    const Severity &severity = severities[level];

    char message[MESSAGE_SIZE];
    va_list values;
    va_start(values, message_format);
    std::vsnprintf(message, sizeof(message), message_format, values);
    va_end(values);

    char location[LOCATION_SIZE];
    std::snprintf(location, sizeof(location), "%s: %4d: %s: ", file_name, line_no,
                  function_name);

    if (level <= thresholds[RPMA_LOG_THRESHOLD_AUX].load(std::memory_order_relaxed))
        to_stderr(severity, location, message);

    // The facility travels with the message: openlog() belongs to the application.
    syslog(LOG_LOCAL7 | severity.syslog, "%s*%s*: %s", location, severity.tag, message);
}

std::atomic<rpma_log_function *> current{default_function};

} // namespace

std::atomic<rpma_log_level> thresholds[RPMA_LOG_THRESHOLD_MAX] = {START, START_AUX};

rpma_log_function *function() {
    return current.load(std::memory_order_acquire);
}

void set_function(rpma_log_function *function) {
    current.store(function != nullptr ? function : default_function, std::memory_order_release);
}

const char *base_name(const char *path) {
    const char *slash = std::strrchr(path, '/');
    return slash != nullptr ? slash + 1 : path;
}

} // namespace rpma::log
