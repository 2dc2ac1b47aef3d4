// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// script.c -- executes the steps of a line of input and prints the results for lines.py, which
// compares them with its tables
//
// Steps are separated by "; ". A step is a function of the library, as "rpma_read len=24" with
// valid values of all other arguments, or a name of the table others[]. Each line runs in its
// own process.

#include "script.h"
#include "arguments.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TIME_LIMIT = 60 }; // seconds; a line needs milliseconds

static struct ibv_cq *foreign;
static unsigned descriptors;

// ---- functions of the library --------------------------------------------------------------

static struct arguments a;
static void *const unset = w.memory; // value of an output before the call

static void *from_hex(const char *text) {
    static unsigned char bytes[256];
    memset(bytes, 0, sizeof(bytes));
    for (unsigned i = 0; sscanf(text + 2 * (size_t)i, "%2hhx", &bytes[i]) == 1; i++)
        ;
    return bytes;
}

// LENGTH or LENGTH:BYTES
static const struct rpma_conn_private_data *private_data(const char *text) {
    static struct rpma_conn_private_data data;
    const char *bytes = strchr(text, ':');
    data.len = (uint8_t)atoi(text);
    data.ptr = from_hex(bytes ? bytes + 1 : "");
    return &data;
}

static uintptr_t argument(unsigned i, const char *text) {
    static const struct rpma_mr_local *mrs[1];
    static unsigned char desc[32];
    const char *type = a.call->param[i].type, *name = a.call->param[i].name;
    if (strcmp(text, "NULL") == 0)
        return 0;
    if (strncmp(text, "memory", 6) == 0)
        return (uintptr_t)w.memory + (uintptr_t)atoi(text + 6);
    if (strncmp(text, "context", 7) == 0)
        return (uintptr_t)fake_context(atoi(text + 7));
    if (strcmp(name, "mrs") == 0 && strcmp(text, "local") == 0)
        return (uintptr_t)memcpy(mrs, &w.h.mr, sizeof(w.h.mr));
    if (strcmp(name, "mrs") == 0 && strcmp(text, "remote") == 0)
        return (uintptr_t)&w.h.remote;
    if (strcmp(name, "pdata") == 0)
        return (uintptr_t)private_data(text);
    if (strcmp(name, "desc") == 0)
        return (uintptr_t)memcpy(desc, from_hex(text), sizeof(desc));
    if (strcmp(type, "const char *") == 0 || strcmp(type, "const void *") == 0)
        return strncmp(text, "0x", 2) == 0 ? (uintptr_t)value_of(text) : (uintptr_t)text;
    if (strcmp(type, "uint32_t *") != 0 && strcmp(type, "enum rpma_conn_event *") != 0)
        return (uintptr_t)value_of(text);
    const uint32_t number = (uint32_t)value_of(text);
    return (uintptr_t)memcpy(a.scratch[i], &number, sizeof(number));
}

static void set_argument(const char *name, uintptr_t value) {
    (void)arguments_set(&a, name, value);
}

static void choose_arguments(const char *function, char *rest) {
    static unsigned taken; // operations that were added to a batch
    arguments_good(&a, function, &w);
    set_argument("pdata", 0);
    if (script_work_count > 0) {
        const bool is_batch = strncmp(function, "rpma_batch_", 11) == 0;
        set_argument("work", (uintptr_t)&script_work[is_batch ? taken : 0]);
        taken += is_batch && taken + 1 < script_work_count;
        set_argument("count", script_work_count);
    }
    for (char *word; (word = strsep(&rest, " "));) {
        char *text = word;
        const char *name = strsep(&text, "=");
        unsigned i = 0;
        while (i < a.call->params && strcmp(a.call->param[i].name, name) != 0)
            i++;
        if (i == a.call->params || !text)
            fail_msg("%s has no argument %s", function, name);
        a.word[i] = argument(i, text);
    }
}

// Fills the stack with a pattern, so that the next call has uninitialized variables.
__attribute__((noinline)) static void overwrite_stack(void) {
    volatile unsigned char stack[16384];
    for (size_t i = 0; i < sizeof(stack); i++)
        stack[i] = 0xa5;
}

static struct {
    int code, error;
    bool writes;
    unsigned texts; // formatted texts
} called;

static void call_function(const char *function, char *rest) {
    choose_arguments(function, rest);
    void **const place = arguments_handle(&a), *before = place && *place ? *place : unset;
    const struct arguments good = a;
    if (place)
        *place = before;
    unit_begin();
    overwrite_stack();
    const unsigned texts = fake_formatted();
    called.code = arguments_call(&a);
    called.error = errno;
    called.texts = fake_formatted() - texts;
    called.writes = memcmp(good.scratch, a.scratch, sizeof(a.scratch)) != 0;
    if (!place)
        return;
    called.writes |= *place != before;
    if (*place == unset)
        *place = NULL;
}

// ---- results -------------------------------------------------------------------------------

static void show_lines(void) {
    for (int level = RPMA_LOG_LEVEL_FATAL; level <= RPMA_LOG_LEVEL_DEBUG; level++) {
        const struct logged_line *line;
        for (unsigned i = 0; (line = logged_line((enum rpma_log_level)level, i)); i++)
            printf("line\t%d\t%s: %s\n", level, line->function, line->message);
    }
}

static void show_requests(void) {
    const struct fake_call *built = fake_last("ibv_wr_complete"),
                           *plain = fake_last("ibv_post_send");
    const struct fake_call *cq = fake_last("ibv_create_cq"), *srq = fake_last("ibv_create_srq");
    const struct fake_call *reg = fake_last("ibv_reg_mr"), *qp = fake_last("rdma_create_qp_ex");
    if (plain || built) {
        const struct fake_post *post = &(plain ? plain : built)->send;
        printf("length\t%u\nfence\t%d\n", post->sge.length,
               (post->flags & IBV_SEND_FENCE) != 0);
        printf("posted\t%#llx\n", (unsigned long long)post->sge.addr);
    }
    if (cq)
        printf("cqe\t%d\n", cq->create_cq.cqe);
    if (qp)
        printf("receives\t%u\n", qp->qp.cap.max_recv_wr);
    if (reg)
        printf("remote read\t%d\n", (reg->reg_mr.access & IBV_ACCESS_REMOTE_READ) != 0);
    if (srq) {
        struct ibv_srq_init_attr attr;
        memcpy(&attr, &srq->srq, sizeof(attr));
        printf("max_wr\t%u\n", attr.attr.max_wr);
        // Providers copy the whole structure, including the padding after its last member.
        printf("padding\t%d\n", ((const unsigned char *)&attr)[sizeof(attr) - 1]);
    }
}

static void show(void) {
    printf("code\t%s\n", called.code == CALLS_NO_FUNCTION ? "no such function"
                                                          : contract_code_name(called.code));
    printf("errno\t%s\n", strerrorname_np(called.error));
    printf("outputs\t%s\n", called.writes ? "written" : "untouched");
    printf("calls\t%s\n", fake_calls());
    printf("texts\t%u\n", called.texts);
    printf("misuses\t%.*s\n", (int)strcspn(fake_misuses(), "\n"), fake_misuses());
    printf("descriptors\t%d\n", (int)(unit_descriptors() - descriptors));
    printf("openlog\t%d\n", fake_library_imports("openlog") + fake_library_imports("closelog"));
    if (w.h.ep)
        printf("ids\t%u\n", fake_ids_on(fixture_ep_fd(&w)));
    if (foreign)
        printf("unacknowledged\t%u\n", fake_unacked(foreign));
    show_requests();
    show_lines();
    // These values differ in each run, or must not be logged.
    printf("memory\t%#llx\n", (unsigned long long)(uintptr_t)w.memory);
    printf("rkey\t%#x\nlkey\t%#x\n", SCRIPT_RKEY, fake_lkey(w.memory));
}

// ---- other steps ---------------------------------------------------------------------------

// A remote region whose address has more than 32 bits, which the log of the original
// truncates.
static void remote(const char *text) {
    unsigned char desc[21];
    unsigned long long addr = SCRIPT_REMOTE_ADDR;
    char usage[64] = "0xff";
    (void)sscanf(text, "%llx %63s", &addr, usage);
    fixture_descriptor(desc, addr, SCRIPT_REMOTE_SIZE, SCRIPT_RKEY, (uint8_t)value_of(usage));
    (void)rpma_mr_remote_delete(&w.h.remote);
    MUST(rpma_mr_remote_from_descriptor(desc, sizeof(desc), &w.h.remote));
}

// Creates objects up to the one in the step, with the shape of its other words.
static void make(const char *step) {
    const struct shape shape = {.incoming = strstr(step, "incoming"),
                                .shared = strstr(step, "shared"),
                                .rcq_size = strstr(step, "rcq") ? 10 : 0,
                                .private_data = 3};
    fixture_peer(&w);
    remote("");
    if (strcmp(step, "listening") == 0)
        fixture_listen(&w);
    else if (strcmp(step, "peer") != 0)
        fixture_request(&w, &shape);
    if (strncmp(step, "connection", 10) == 0)
        fixture_connect(&w, &shape);
    descriptors = unit_descriptors();
}

static int error_named(const char *name) {
    for (int error = 1; error < 256; error++)
        if (strerrorname_np(error) && strcmp(strerrorname_np(error), name) == 0)
            return error;
    return 0;
}

static void fail_once(const char *text) {
    static char names[8][64]; // the fakes store the pointers
    static unsigned count;
    const char *error = strrchr(text, ' ');
    char *const name = names[count++ % LENGTH(names)];
    snprintf(name, sizeof(names[0]), "%.*s", (int)(error - text), text);
    fake_fail(name, 1, error_named(error + 1));
}

static void cm_event(const char *text) {
    const char *status = strchr(text, ' ');
    char name[64];
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(text, " "), text);
    const enum rdma_cm_event_type type = (enum rdma_cm_event_type)value_of(name);
    const bool of_conn = w.h.conn && type != RDMA_CM_EVENT_CONNECT_REQUEST;
    fake_cm_event_status(of_conn ? fixture_event_fd(&w) : fixture_ep_fd(&w), type,
                         status ? atoi(status) : 0, "abc", 3);
}

static void foreign_event(const char *text) {
    int fd = -1;
    (void)text;
    if (rpma_conn_get_compl_fd(w.h.conn, &fd) != 0)
        fd = fixture_cq_fd(fixture_cq(&w));
    foreign = fake_foreign_event(fd);
}

#define SHORT_STEP(name, statement)      \
    static void name(const char *text) { \
        (void)text;                      \
        statement;                       \
    }
SHORT_STEP(notify, fake_notify(fixture_qp(&w)->send_cq))
SHORT_STEP(poll_returns, fake_poll_returns(atoi(text)))
SHORT_STEP(nonblocking,
           fixture_nonblocking(w.h.conn ? fixture_event_fd(&w) : fixture_ep_fd(&w)))
// Uses the CQ of the connection like a CQ of rpma_cq_new().
SHORT_STEP(own_cq, w.h.shared_cq = fixture_cq(&w))
SHORT_STEP(environment, (void)putenv((char *)(uintptr_t)text))
SHORT_STEP(log_off, (void)rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED))

static const struct {
    const char *name;
    void (*take)(const char *text);
} others[] = {{"device", script_set_device},
              {"remote", remote},
              {"fail", fail_once},
              {"event", cm_event},
              {"notify", notify},
              {"foreign event", foreign_event},
              {"poll returns", poll_returns},
              {"nonblocking", nonblocking},
              {"own cq", own_cq},
              {"environment", environment},
              {"log off", log_off},
              {"work", script_add_work}};

static void take_step(char *step) {
    if (strncmp(step, "rpma_", 5) == 0) {
        const char *function = strsep(&step, " ");
        call_function(function, step);
        return;
    }
    static const char *const objects[] = {"peer", "listening", "request", "connection"};
    for (size_t i = 0; i < LENGTH(objects); i++)
        if (strncmp(step, objects[i], strlen(objects[i])) == 0) {
            make(step);
            return;
        }
    for (size_t i = 0; i < LENGTH(others); i++) {
        const size_t length = strlen(others[i].name);
        if (strncmp(step, others[i].name, length) != 0 || (step[length] && step[length] != ' '))
            continue;
        others[i].take(step + length + (step[length] == ' '));
        return;
    }
    fail_msg("no step is called %s", step);
}

// ---- a line of input -----------------------------------------------------------------------

// Sets the limits that advice contains, so that lines are the same on every machine.
static void limit_to(int resource, rlim_t maximum) {
    struct rlimit limit;
    assert_int_equal(getrlimit((__rlimit_resource_t)resource, &limit), 0);
    limit.rlim_cur = maximum;
    assert_int_equal(setrlimit((__rlimit_resource_t)resource, &limit), 0);
}

static void take_all(void **line) {
    char *rest = *line;
    signal(SIGSEGV, SIG_DFL); // not the handler of CMocka
    limit_to(RLIMIT_MEMLOCK, 48 * 1024);
    limit_to(RLIMIT_NOFILE, 100);
    fake_reset();
    logged_start();
    for (char *step; (step = rest);) {
        char *end = strstr(rest, "; ");
        rest = end ? end + 2 : NULL;
        if (end)
            *end = '\0';
        take_step(step);
    }
    show();
}

// The process deletes no objects, because a delete may fail again. The sweeps check for leaks.
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) {
    return 1;
}

static int take_line(char *line) {
    const struct CMUnitTest tests[] = {{line, take_all, NULL, NULL, line}};
    alarm(TIME_LIMIT);
    dup2(STDOUT_FILENO, STDERR_FILENO);
    return _cmocka_run_group_tests("script", tests, 1, NULL, NULL);
}

int main(void) {
    static char line[4096];
    fake_hook_allocator();
    unit_ignores_errno = true;
    while (fgets(line, sizeof(line), stdin)) {
        int status = -1;
        line[strcspn(line, "\n")] = '\0';
        const pid_t child = fork();
        if (child == 0)
            return take_line(line);
        waitpid(child, &status, 0);
        printf("end\t%s\n", WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "");
        fflush(stdout);
    }
    return 0;
}
