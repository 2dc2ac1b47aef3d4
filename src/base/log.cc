// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// log.cc -- the default log function: syslog, and optionally stderr

#include "base/log.hh"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <strings.h>
#include <sys/syscall.h>
#include <syslog.h>
#include <unistd.h>

#include "base/format.hh"
#include "base/probes.hh"
#include "base/visible.hh"

namespace rpma {

namespace {

#ifdef DEBUG
constexpr rpma_log_level DEFAULT_LEVEL = RPMA_LOG_LEVEL_DEBUG;
constexpr rpma_log_level DEFAULT_AUX_LEVEL = RPMA_LOG_LEVEL_WARNING;
#else
constexpr rpma_log_level DEFAULT_LEVEL = RPMA_LOG_LEVEL_WARNING;
constexpr rpma_log_level DEFAULT_AUX_LEVEL = RPMA_LOG_DISABLED;
#endif

// Indexed by level. The tags have been the same since 1.0.0, and scripts search for them.
constexpr struct {
    int syslog;
    const char *tag;
    const char *name; // as a value of RPMA_LOG
} levels[] = {
    {LOG_CRIT, "*FATAL* ", "fatal"},      {LOG_ERR, "*ERROR* ", "error"},
    {LOG_WARNING, "*WARN*  ", "warning"}, {LOG_NOTICE, "*NOTE*  ", "notice"},
    {LOG_INFO, "*INFO*  ", "info"},       {LOG_DEBUG, "*DEBUG* ", "debug"},
};

// "Nov 20 21:51:00.123456 ", or "" if the clock cannot be read.
void local_time(char *text, std::size_t size) {
    timespec now;
    tm parts;
    text[0] = '\0';
    if (clock_gettime(CLOCK_REALTIME, &now) != 0 || localtime_r(&now.tv_sec, &parts) == nullptr)
        return;
    std::size_t used = std::strftime(text, size, "%b %d %H:%M:%S", &parts);
    std::snprintf(text + used, size - used, ".%06ld ", now.tv_nsec / 1000);
}

struct LocationText {
    char text[256];

    LocationText(const char *file, int line, const char *function) {
        std::snprintf(text, sizeof(text), "%s: %3d: %s: ", file, line, function);
    }
};

// In a program that was started with a closed standard error, its number may be that of a
// device or a channel, and a line would be a command to the driver. libibverbs, librdmacm and
// the kernel open these with O_CLOEXEC (rdma-core util/open_cdev.c: open_cdev_internal(); Linux
// rdma_core.c: alloc_begin_fd_uobject()), and a standard error without it.
bool is_stderr_open() {
    return fcntl(fileno(stderr), F_GETFD) == 0;
}

void write_to_stderr(rpma_log_level level, const LocationText &location, const char *message) {
    if (!is_stderr_open())
        return;
    char time[64];
    local_time(time, sizeof(time));
    std::fprintf(stderr, "%s[%ld] %s%s%.*s\n", time, syscall(SYS_gettid), levels[level].tag,
                 location.text, static_cast<int>(std::strcspn(message, "\n")), message);
}

std::atomic<rpma_log_level> thresholds[RPMA_LOG_THRESHOLD_MAX] = {DEFAULT_LEVEL,
                                                                  DEFAULT_AUX_LEVEL};
// The level that RPMA_LOG sets for stderr. Written before main() only.
rpma_log_level environment_level = RPMA_LOG_DISABLED;

[[gnu::format(printf, 5, 6)]] void
default_log_function(rpma_log_level level, const char *file_name, const int line_no,
                     const char *function_name, const char *message_format, ...) {
    char message[LOG_MESSAGE_SIZE];
    va_list values;
    va_start(values, message_format);
    std::vsnprintf(message, sizeof(message), message_format, values);
    va_end(values);

    const LocationText location(file_name, line_no, function_name);
    if (level <= log_threshold(RPMA_LOG_THRESHOLD_AUX) && level > environment_level)
        write_to_stderr(level, location, message);
    // Pass the facility with each message: only the application may call openlog().
    syslog(LOG_LOCAL7 | levels[level].syslog, "%s%s%s", levels[level].tag, location.text,
           message);
}

std::atomic<rpma_log_function *> log_function{default_log_function};

// The most verbose level that is currently enabled.
rpma_log_level enabled_level() {
    return std::max(thresholds[RPMA_LOG_THRESHOLD].load(), environment_level);
}

// If several threads set a threshold at once, the last one that stores the level stores the
// right one: all these accesses are in one total order, and each thread recomputes the level
// after its store.
void update_level() {
    do
        log_level.store(enabled_level());
    while (log_level.load() != enabled_level());
}

// With RPMA_LOG, an operator reads the log without changing the program. Set-user-ID and
// similar programs ignore their caller's environment.
[[gnu::constructor]] void read_environment() {
    // On the stack: loading the library then reads no page of its constants.
    const char name[] = "RPMA_LOG";
    const char *value = secure_getenv(name);
    if (value == nullptr || value[0] == '\0')
        return;
    for (int level = RPMA_LOG_LEVEL_FATAL; level <= RPMA_LOG_LEVEL_DEBUG; level++)
        if (strcasecmp(value, levels[level].name) == 0)
            environment_level = static_cast<rpma_log_level>(level);
    if (environment_level == RPMA_LOG_DISABLED)
        std::fprintf(stderr,
                     "librpma: RPMA_LOG=%s is ignored: use fatal, error, warning, notice, info "
                     "or debug\n",
                     Visible(value).chars);
    update_level();
}

} // namespace

std::atomic<rpma_log_level> log_level = DEFAULT_LEVEL;

rpma_log_level log_threshold(rpma_log_threshold threshold) {
    return thresholds[threshold].load(std::memory_order_relaxed);
}

void set_log_threshold(rpma_log_threshold threshold, rpma_log_level level) {
    thresholds[threshold].store(level);
    update_level();
}

void set_log_function(rpma_log_function *function) {
    log_function.store(function != nullptr ? function : default_log_function,
                       std::memory_order_release);
}

void log(rpma_log_level level, const SourceLocation &location, const char *format, ...) {
    char raw[LOG_MESSAGE_SIZE];
    va_list values;
    va_start(values, format);
    vformat(raw, sizeof(raw), format, values);
    va_end(values);
    log_message(level, location, raw, nullptr);
}

void log_message(rpma_log_level level, const SourceLocation &location, const char *raw,
                 char *copy) {
    // Any message becomes a single line, for every log function.
    char message[LOG_MESSAGE_SIZE];
    make_visible(message, sizeof(message), raw, false);
    probe::log(level, location.function, message);

    if (level <= environment_level)
        write_to_stderr(level, LocationText(location.file, location.line, location.function),
                        message);
    if (level <= log_threshold(RPMA_LOG_THRESHOLD))
        log_function.load(std::memory_order_acquire)(level, location.file, location.line,
                                                     location.function, "%s\n", message);
    if (copy != nullptr)
        std::memcpy(copy, message, std::strlen(message) + 1);
}

} // namespace rpma
