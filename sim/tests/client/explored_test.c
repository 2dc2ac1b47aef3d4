/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rdma-sim developers */

/* explored_test.c -- rdma_sim_explore(): locks, programs that do not end or wait for long,
 * random numbers, and faults that end programs
 */

#include "explored.h"

#include <sys/epoll.h>
#include <unistd.h>

static unsigned long turns; /* of a client that waits for the lock */

/* Without a wait between its tries. `argument`: whether it is a lock. */
static int increase_under_lock(void *argument) {
    const int is_lock = *(const int *)argument;
    struct client client;
    MUST(connect_client(&client) == 0);
    do {
        turns++;
        if (is_lock)
            MUST(execute(&client, IBV_WR_ATOMIC_CMP_AND_SWP, 0, 1) == 0);
        else
            MUST(read_word(&client, 0) == 0);
    } while (client.word != 0);
    if (!is_lock)
        MUST(write_word(&client, 0, 1) == 0);
    MUST(read_word(&client, 8) == 0);
    rdma_sim_advance(200000000); /* its holder is slow */
    MUST(write_word(&client, 8, client.word + 1) == 0);
    MUST(read_word(&client, 8) == 0);
    MUST(write_word(&client, 0, 0) == 0);
    return rdma_disconnect(client.id);
}

static const char *check_counter(void *argument) {
    (void)argument;
    if (turns > 4000)
        return "a client waits too long for the lock";
    return memory.counter == 2 ? NULL : "an update of the counter is lost";
}

static int explore_lock(int is_lock) {
    const struct rdma_sim_program programs[] = {{1, serve, NULL, NULL},
                                                {2, increase_under_lock, &is_lock, NULL},
                                                {3, increase_under_lock, &is_lock, NULL}};
    const struct rdma_sim_test test = {.options = {.hosts = 3},
                                       .programs = programs,
                                       .program_count = 3,
                                       .check = check_counter,
                                       .schedules = 300};
    clients = 2;
    return rdma_sim_explore(&test);
}

static void lock_that_is_tried_without_a_wait_has_no_finding(void **state) {
    (void)state;
    if (explore_lock(1) != 0)
        fail_msg("%s", rdma_sim_error());
}

static void lock_of_a_read_and_a_write_is_found(void **state) {
    (void)state;
    assert_int_equal(explore_lock(0), RDMA_SIM_FOUND);
    assert_non_null(strstr(rdma_sim_error(), "an update of the counter is lost"));
}

/* ---- programs that wait ---------------------------------------------------------------------
 */

static int query_for_ever(void *argument) {
    (void)argument;
    struct ibv_context *const device = ibv_open_device(*ibv_get_device_list(NULL));
    struct ibv_device_attr attr;
    while (device == NULL || ibv_query_device(device, &attr) == 0)
        ;
    return 1;
}

/* 10 times 200 s without a call of the device. */
static int wait_for_long(void *argument) {
    (void)argument;
    for (int i = 0; i < 10; i++)
        rdma_sim_advance(200000000000);
    return 0;
}

/* A wait of 100,000 s, next to a program that waits often. */
static int wait_once_for_long(void *argument) {
    (void)argument;
    rdma_sim_advance(100000000000000);
    return 0;
}

static int wait_often(void *argument) {
    (void)argument;
    for (int i = 0; i < 8000; i++)
        rdma_sim_advance(10000000000);
    return 0;
}

/* Waits for an event that comes, and for one that does not. */
static int poll_descriptors(void *argument) {
    struct pollfd event = {.events = POLLIN};
    struct rdma_cm_id *const id = endpoint(RAI_PASSIVE);
    (void)argument;
    MUST(id != NULL && rdma_listen(id, 1) == 0);
    event.fd = id->channel->fd;
    MUST(rdma_sim_poll(&event, 1, 60000) == 1 && event.revents == POLLIN);
    MUST(rdma_sim_poll(NULL, 0, 60000) == 0);
    rdma_sim_exit(0);
}

static int wait_by_epoll(void *argument) {
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = 7};
    struct rdma_cm_id *const id = endpoint(RAI_PASSIVE);
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    (void)argument;
    MUST(id != NULL && rdma_listen(id, 1) == 0);
    MUST(epoll_ctl(epoll, EPOLL_CTL_ADD, id->channel->fd, &event) == 0);
    event.data.u32 = 0;
    MUST(rdma_sim_epoll_wait(epoll, &event, 1, 60000) == 1 && event.data.u32 == 7);
    MUST(epoll_ctl(epoll, EPOLL_CTL_DEL, id->channel->fd, NULL) == 0);
    MUST(rdma_sim_epoll_wait(epoll, &event, 1, 60000) == 0);
    rdma_sim_exit(0);
}

static int connect_and_end(void *argument) {
    struct rdma_conn_param param = {0};
    (void)argument;
    (void)rdma_connect(endpoint(0), &param);
    return 0;
}

static int destroy_with_event(void *argument) {
    struct rdma_cm_event *event;
    struct rdma_cm_id *const id = endpoint(RAI_PASSIVE);
    (void)argument;
    MUST(id != NULL && rdma_listen(id, 1) == 0);
    MUST(rdma_get_cm_event(id->channel, &event) == 0);
    return rdma_destroy_id(id);
}

static int explore(int (*run)(void *), const char *faults, uint64_t seed) {
    const struct rdma_sim_program programs[] = {{1, run, NULL, NULL}};
    const struct rdma_sim_test test = {.options = {.hosts = 1, .seed = seed},
                                       .programs = programs,
                                       .program_count = 1,
                                       .schedules = 1,
                                       .faults = faults};
    return rdma_sim_explore(&test);
}

static void endless_program_after_a_fault_is_no_finding(void **state) {
    (void)state;
    /* This seed has a fault, which concerns posts; without it, the program is a finding. */
    assert_int_equal(explore(query_for_ever, "refuse", 11), 0);
}

static void program_with_long_waits_is_no_finding(void **state) {
    (void)state;
    assert_int_equal(explore(wait_for_long, "none", 1), 0);
}

static void program_with_one_wait_next_to_frequent_ones_is_no_finding(void **state) {
    const struct rdma_sim_program programs[] = {{1, wait_once_for_long, NULL, NULL},
                                                {1, wait_often, NULL, NULL}};
    const struct rdma_sim_test test = {.options = {.hosts = 1},
                                       .programs = programs,
                                       .program_count = 2,
                                       .schedules = 1,
                                       .faults = "none"};
    (void)state;
    if (rdma_sim_explore(&test) != 0)
        fail_msg("%s", rdma_sim_error());
}

static int explore_server(int (*run)(void *)) {
    const struct rdma_sim_program programs[] = {{1, run, NULL, NULL},
                                                {2, connect_and_end, NULL, NULL}};
    const struct rdma_sim_test test = {
        .programs = programs, .program_count = 2, .schedules = 100};
    return rdma_sim_explore(&test);
}

static void poll_is_ended_by_an_event_or_its_time(void **state) {
    (void)state;
    if (explore_server(poll_descriptors) != 0)
        fail_msg("%s", rdma_sim_error());
    assert_int_equal(rdma_sim_poll(NULL, 0, 0), 0);
}

static void epoll_is_ended_by_an_event_or_its_time(void **state) {
    struct epoll_event event;
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    (void)state;
    if (explore_server(wait_by_epoll) != 0)
        fail_msg("%s", rdma_sim_error());
    assert_int_equal(rdma_sim_epoll_wait(epoll, &event, 1, 0), 0);
    assert_int_equal(close(epoll), 0);
}

static void destruction_of_an_object_with_an_event_is_a_finding(void **state) {
    (void)state;
    assert_int_equal(explore_server(destroy_with_event), RDMA_SIM_FOUND);
    assert_non_null(strstr(rdma_sim_error(), "host1 waits in rdma_destroy_id"));
}

/* ---- objects that are left ------------------------------------------------------------------
 */

/* `argument`: whether the last one is destroyed. */
static int create_objects(void *argument) {
    struct ibv_device **const list = ibv_get_device_list(NULL);
    struct ibv_context *const device = ibv_open_device(*list);
    struct ibv_pd *const pd = ibv_alloc_pd(device);
    struct ibv_comp_channel *const channel = ibv_create_comp_channel(device);
    struct ibv_cq *const cq = ibv_create_cq(device, 1, NULL, channel, 0);
    MUST(pd != NULL && channel != NULL && cq != NULL);
    MUST(ibv_destroy_cq(cq) == 0 && ibv_destroy_comp_channel(channel) == 0);
    if (*(const int *)argument)
        MUST(ibv_dealloc_pd(pd) == 0);
    ibv_free_device_list(list); /* the device remains open */
    return 0;
}

static void object_that_is_left_is_a_finding_if_wanted(void **state) {
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        int destroys = i % 2 == 1;
        const struct rdma_sim_program program = {1, create_objects, &destroys, "creator"};
        const struct rdma_sim_test test = {.options = {.hosts = 1},
                                           .programs = &program,
                                           .program_count = 1,
                                           .schedules = 1,
                                           .flags = i < 2 ? RDMA_SIM_TEST_LEAKS : 0};
        assert_int_equal(rdma_sim_explore(&test), i == 0 ? RDMA_SIM_FOUND : 0);
        if (i == 0)
            assert_non_null(
                strstr(rdma_sim_error(),
                       "creator ends with status 0 without destroying its protection domain"));
    }
}

/* ---- random numbers, and faults that end programs ------------------------------------------
 */

static uint64_t numbers[4];

static int draw_numbers(void *argument) {
    uint64_t *const drawn = argument;
    drawn[0] = rdma_sim_random();
    rdma_sim_advance(1000);
    drawn[1] = rdma_sim_random();
    return 0;
}

static const char *report_numbers(void *argument) {
    static char text[100];
    (void)argument;
    for (size_t i = 0; i < 4; i++)
        for (size_t other = 0; other < i; other++)
            if (numbers[i] == numbers[other])
                return "a number is repeated";
    snprintf(text, sizeof(text), "drawn: %llx %llx %llx %llx", (unsigned long long)numbers[0],
             (unsigned long long)numbers[1], (unsigned long long)numbers[2],
             (unsigned long long)numbers[3]);
    return text;
}

static void random_numbers_depend_on_the_seed_only(void **state) {
    const struct rdma_sim_program programs[] = {{1, draw_numbers, &numbers[0], NULL},
                                                {2, draw_numbers, &numbers[2], NULL}};
    char drawn[3][200];
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        const struct rdma_sim_test test = {.options = {.seed = 1 + i / 2},
                                           .programs = programs,
                                           .program_count = 2,
                                           .check = report_numbers};
        assert_int_equal(rdma_sim_explore(&test), RDMA_SIM_FOUND);
        assert_non_null(strstr(rdma_sim_error(), "drawn: "));
        snprintf(drawn[i], sizeof(drawn[i]), "%s", strstr(rdma_sim_error(), "drawn: "));
    }
    assert_string_equal(drawn[0], drawn[1]);
    assert_string_not_equal(drawn[1], drawn[2]);
    assert_int_not_equal(rdma_sim_random(), rdma_sim_random());
}

static unsigned starts, ends;

static int count_starts(void *argument) {
    (void)argument;
    starts++;
    rdma_sim_advance(1000000);
    rdma_sim_advance(1000000);
    ends++;
    return 0;
}

static const char *check_restarted(void *argument) {
    (void)argument;
    return starts == 2 && ends == 1 ? "it was started again" : NULL;
}

static const char *check_killed(void *argument) {
    (void)argument;
    return starts == 1 && ends == 0 ? "it was killed" : NULL;
}

static void killed_program_is_started_again_or_not(void **state) {
    const char *(*const checks[])(void *) = {check_restarted, check_killed};
    const char *const findings[] = {"it was started again", "it was killed"};
    const struct rdma_sim_program program = {1, count_starts, NULL, NULL};
    (void)state;
    for (size_t i = 0; i < 2; i++)
        for (int is_exhaustive = 0; is_exhaustive < 2; is_exhaustive++) {
            struct rdma_sim_test test = {.programs = &program,
                                         .program_count = 1,
                                         .check = checks[i],
                                         .schedules = 400,
                                         .faults = "kill",
                                         .search = is_exhaustive ? "exhaustive" : NULL};
            assert_int_equal(rdma_sim_explore(&test), RDMA_SIM_FOUND);
            assert_non_null(strstr(rdma_sim_error(), findings[i]));
            assert_ptr_equal(strstr(rdma_sim_error(), is_exhaustive ? "schedule " : "seed "),
                             rdma_sim_error());
            test.faults = "none";
            assert_int_equal(rdma_sim_explore(&test), 0);
        }
}

/* Both are on the host. */
static void program_that_is_frozen_at_a_power_failure_is_started_again(void **state) {
    const struct rdma_sim_program programs[] = {{1, count_starts, NULL, NULL},
                                                {1, count_starts, NULL, NULL}};
    const struct rdma_sim_memory lost = {1, &memory, sizeof(memory), 0};
    const struct rdma_sim_test test = {.programs = programs,
                                       .program_count = 2,
                                       .schedules = 2000,
                                       .faults = "freeze,power-off",
                                       .search = "exhaustive:2",
                                       .memories = &lost,
                                       .memory_count = 1};
    (void)state;
    if (rdma_sim_explore(&test) != 0)
        fail_msg("%s", rdma_sim_error());
}

static const char *check_restarted_twice(void *argument) {
    (void)argument;
    return starts == 3 ? "it was started three times" : NULL;
}

static void exhaustive_search_is_limited_to_its_choices(void **state) {
    static const struct {
        const char *search;
        int result;
    } rows[] = {{"exhaustive:1", 0},       {"exhaustive:2", RDMA_SIM_FOUND},
                {"exhaustive:", EINVAL},   {"exhaustive:0", EINVAL},
                {"exhaustive:2x", EINVAL}, {"random:1", EINVAL}};
    const struct rdma_sim_program program = {1, count_starts, NULL, NULL};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct rdma_sim_test test = {.programs = &program,
                                           .program_count = 1,
                                           .check = check_restarted_twice,
                                           .schedules = UINT64_MAX,
                                           .faults = "kill",
                                           .search = rows[i].search};
        const int result = rdma_sim_explore(&test);
        if (result != rows[i].result)
            fail_msg("%s: %d, %s", rows[i].search, result, rdma_sim_error());
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lock_that_is_tried_without_a_wait_has_no_finding),
        cmocka_unit_test(lock_of_a_read_and_a_write_is_found),
        cmocka_unit_test(endless_program_after_a_fault_is_no_finding),
        cmocka_unit_test(program_with_long_waits_is_no_finding),
        cmocka_unit_test(program_with_one_wait_next_to_frequent_ones_is_no_finding),
        cmocka_unit_test(poll_is_ended_by_an_event_or_its_time),
        cmocka_unit_test(epoll_is_ended_by_an_event_or_its_time),
        cmocka_unit_test(destruction_of_an_object_with_an_event_is_a_finding),
        cmocka_unit_test(object_that_is_left_is_a_finding_if_wanted),
        cmocka_unit_test(random_numbers_depend_on_the_seed_only),
        cmocka_unit_test(killed_program_is_started_again_or_not),
        cmocka_unit_test(program_that_is_frozen_at_a_power_failure_is_started_again),
        cmocka_unit_test(exhaustive_search_is_limited_to_its_choices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
