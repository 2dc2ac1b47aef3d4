#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rdma-sim developers
"""rdma-sim explore: the commands of its tutorial, replays, and invalid commands.

usage: explore.py RDMA-SIM PAGE EXAMPLES    EXAMPLES is examples/verbs of the sources
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree

PROGRAM, PAGE, EXAMPLES = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
FOR_EVER = "#include <poll.h>\nint main(void) { return poll(0, 0, -1); }"
SLEEP = "#include <unistd.h>\nint main(void) { return sleep(100000); }"
CRASH = "#include <stdlib.h>\nint main(void) { abort(); }"
FAIL = "#include <stdio.h>\nint main(void) { fputs(\"the reason\\n\", stderr); return 3; }"
MANY_LINES = '#include <stdio.h>\nint main(void) { for (int i = 1; i <= 3000; i++) printf("line %d\\n", i); return 1; }'
FAIL_IN_OUTPUT = '#include <stdio.h>\nint main(void) { puts("begin\\nBAD slot 1\\n"); return 3; }'
# The first one that ends creates a file, which the other one removes.
IN_ORDER = """
#include <stdio.h>
#include <unistd.h>
int main(void) {
    for (int i = 0; i < 5; i++)
        usleep(1000);
    if (remove("first") == 0)
        return 0;
    puts("before");
    return fclose(fopen("first", "w"));
}
"""
LONG_WAITS = "#include <poll.h>\nint main(void) { for (int i = 0; i < 5; i++) poll(0, 0, 600000); }"
POLL_FOR_EVER = "#include <poll.h>\nint main(void) { while (poll(0, 0, 1000) == 0); }"
# Its other form has an argument.
EVENTS = """
#include <rdma/rdma_cma.h>
int main(int argc, char **argv) {
    struct rdma_cm_event *event;
    struct ibv_cq *cq;
    void *context;
    if (argc > 1)
        return rdma_get_cm_event(rdma_create_event_channel(), &event);
    return ibv_get_cq_event(ibv_create_comp_channel(ibv_open_device(ibv_get_device_list(0)[0])), &cq, &context);
}
"""
FAIL_ONCE = """
#include <stdio.h>
#include <unistd.h>
int main(void) { // in its second run
    if (access("once", F_OK) != 0)
        return fclose(fopen("once", "w"));
    return rename("once", "twice") == 0 && link("twice", "once") == 0 && access("thrice", F_OK) != 0 &&
           fclose(fopen("thrice", "w")) == 0;
}
"""
# Replaces its file by a new one, or removes it first. The file has its content again in each schedule.
REPLACE = """
#include <stdio.h>
#include <string.h>
int main(int argc, char *argv[]) {
    char text[16] = "", path[64];
    FILE *const file = fopen(argv[1], "r");
    snprintf(path, sizeof(path), "%s.new", argv[1]);
    if (!file || !fgets(text, sizeof(text), file) || strcmp(text, "before") != 0)
        return 1;
    FILE *const new = fopen(path, "w");
    if (!new || fputs("after", new) < 0 || fclose(new) != 0)
        return 2;
    if (argc > 2 && remove(argv[1]) != 0)
        return 3;
    return rename(path, argv[1]) == 0 ? 0 : 4;
}
"""
# Its third completion queue follows the queue pair that fails.
SET_UP = """
#include <infiniband/verbs.h>
int main(void) {
    struct ibv_context *const context = ibv_open_device(ibv_get_device_list(0)[0]);
    struct ibv_pd *const pd = ibv_alloc_pd(context);
    struct ibv_cq *const cq = ibv_create_cq(context, 1, 0, 0, 0);
    struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .cap = {1 << 30, 1, 1, 1}, .qp_type = IBV_QPT_RC};
    ibv_create_cq(context, 1, 0, 0, 0);
    ibv_create_qp(pd, &init);
    ibv_create_cq(context, 1, 0, 0, 0);
    return 1;
}
"""
COUNTER = """
#include <sys/prctl.h>
int main(void) {
    int mode = 0;
    __asm__ volatile("%s" : : : "eax", "edx");
    return prctl(PR_GET_TSC, &mode) != 0 || mode != %s;
}
"""
# Each of these programs has a defect that only one kind of fault reveals.
KILL = """
#include <stdio.h>
#include <unistd.h>
int main(void) {
    puts("begin");
    for (int i = 0; i < 20; i++)
        usleep(1000);
    puts("end");
}
"""
PAUSE = """
#include <stdio.h>
#include <time.h>
#include <unistd.h>
int main(void) {
    struct timespec begin, end;
    for (int i = 0; i < 20; i++) {
        clock_gettime(CLOCK_MONOTONIC, &begin);
        usleep(1000);
        clock_gettime(CLOCK_MONOTONIC, &end);
        if (end.tv_sec - begin.tv_sec > 5)
            puts("late");
    }
}
"""
POWER = """
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void) {
    int fd = open("memory", O_RDWR);
    strcpy(mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), "stored");
    puts("stored");
    for (int i = 0; i < 20; i++)
        usleep(1000);
}
"""
# A program that does not test whether a call succeeds.
CRASH_OF_REFUSED = """
#include <infiniband/verbs.h>
int main(void) {
    struct ibv_pd *pd = ibv_alloc_pd(ibv_open_device(ibv_get_device_list(NULL)[0]));
    return pd->context->cmd_fd == -2;
}
"""
REFUSE = """
#include "common.h"
#include <stdio.h>
int main(int argc, char *argv[]) {
    struct connection to;
    struct record records[2] = {{"record 1"}, {"record 2"}};
    struct ibv_wc wc;
    connect_to(&to, argv[argc - 1], NULL);
    struct ibv_mr *mr = rdma_reg_msgs(to.id, records, sizeof(records));
    rdma_post_write(to.id, NULL, &records[0], sizeof(records[0]), mr, 0, to.remote.address, to.remote.rkey);
    post_record(&to, 2, &records[1], mr);
    must(rdma_get_send_comp(to.id, &wc) == 1 && wc.status == IBV_WC_SUCCESS, "rdma_get_send_comp");
    puts("stored 1");
}
"""
# A failed doorbell: the post fails, but its requests are executed.
DOORBELL = """
#include "common.h"
#include <stdio.h>
int main(int argc, char *argv[]) {
    struct connection to;
    struct record record = {"record 1"};
    struct ibv_wc wc;
    connect_to(&to, argv[argc - 1], NULL);
    struct ibv_mr *mr = rdma_reg_msgs(to.id, &record, sizeof(record));
    if (rdma_post_write(to.id, NULL, &record, sizeof(record), mr, IBV_SEND_SIGNALED, to.remote.address, to.remote.rkey))
        puts("refused");
    else
        rdma_get_send_comp(to.id, &wc);
}
"""
# Calls that wait or read the clock, and are refused: the argument is the name.
WAITS = """
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#define CALL(name, ...) if (strcmp(argv[1], #name) == 0) name(__VA_ARGS__)
int main(int argc, char *argv[]) {
    struct timespec time = {0, 0};
    struct itimerval interval = {{0, 0}, {0, 1}};
    struct sigevent event = {.sigev_notify = SIGEV_THREAD};
    timer_t timer;
    CALL(setitimer, ITIMER_VIRTUAL, &interval, NULL);
    CALL(timer_create, CLOCK_REALTIME, &event, &timer);
    CALL(kill, getpid(), SIGSTOP);
    if (argc > 2) { // five seconds by the clock of atomic time
        clock_gettime(CLOCK_TAI, &time);
        time.tv_sec += 5;
        clock_nanosleep(CLOCK_TAI, TIMER_ABSTIME, &time, NULL);
    }
    return argc > 2 ? 0 : 9;
}
"""
# An event that is not acknowledged.
UNACKNOWLEDGED = """
#include <infiniband/verbs.h>
int main(void) {
    struct ibv_context *device = ibv_open_device(ibv_get_device_list(NULL)[0]);
    struct ibv_comp_channel *channel = ibv_create_comp_channel(device);
    struct ibv_pd *pd = ibv_alloc_pd(device);
    struct ibv_cq *cq = ibv_create_cq(device, 4, NULL, channel, 0);
    struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    struct ibv_recv_wr *bad, wr = {.wr_id = 1};
    void *context;
    ibv_req_notify_cq(cq, 0);
    ibv_modify_qp(qp, &attr, IBV_QP_STATE);
    ibv_post_recv(qp, &wr, &bad);
    ibv_get_cq_event(channel, &cq, &context);
    ibv_destroy_qp(qp);
    return ibv_destroy_cq(cq);
}
"""
# Loses a datagram for the reason in its argument.
LOST_DATAGRAM = """
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <string.h>
static char data[8192];
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *datagram_qp(int state, uint32_t qkey) {
    struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .cap = {8, 8, 1, 1}, .qp_type = IBV_QPT_UD};
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = qkey};
    ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
    for (attr.qp_state = IBV_QPS_RTR; (int)attr.qp_state <= state; attr.qp_state++)
        ibv_modify_qp(qp, &attr, attr.qp_state == IBV_QPS_RTS ? IBV_QP_STATE | IBV_QP_SQ_PSN : IBV_QP_STATE);
    return qp;
}
int main(int argc, char *argv[]) {
    const char *why = argv[argc - 1];
    struct ibv_context *context = ibv_open_device(ibv_get_device_list(NULL)[0]);
    pd = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, 8, NULL, NULL, 0);
    struct ibv_mr *mr = ibv_reg_mr(pd, data, sizeof(data), IBV_ACCESS_LOCAL_WRITE);
    struct ibv_qp *from = datagram_qp(IBV_QPS_RTS, 7), *to = datagram_qp(strcmp(why, "state") ? IBV_QPS_RTR : IBV_QPS_INIT, 7);
    struct ibv_ah_attr address = {.port_num = 1, .is_global = 1};
    address.grh.sgid_index = 1;
    ibv_query_gid(context, 1, 1, &address.grh.dgid);
    if (strcmp(why, "gid") == 0)
        address.grh.dgid.raw[15]++;
    if (strcmp(why, "group") == 0)
        inet_pton(AF_INET6, "ff0e::7", address.grh.dgid.raw);
    struct ibv_sge sge = {(uintptr_t)data, strcmp(why, "mtu") ? 64 : 4100, mr->lkey}, space = {(uintptr_t)data, strcmp(why, "length") ? 4096 : 100, mr->lkey};
    struct ibv_recv_wr *bad_receive, receive = {.sg_list = &space, .num_sge = 1};
    struct ibv_send_wr *bad_send, send = {.wr_id = 9, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    send.wr.ud.ah = ibv_create_ah(pd, &address);
    send.wr.ud.remote_qpn = strcmp(why, "group") == 0 ? 0xffffff : to->qp_num + 100 * (strcmp(why, "number") == 0);
    send.wr.ud.remote_qkey = strcmp(why, "qkey") == 0 ? 8 : 7;
    if (strcmp(why, "receive") != 0)
        ibv_post_recv(to, &receive, &bad_receive);
    struct ibv_wc wc;
    if (ibv_post_send(from, &send, &bad_send) != 0)
        return 2;
    while (ibv_poll_cq(cq, 1, &wc) == 0)
        ;
    return strcmp(why, "none") != 0 && wc.status == IBV_WC_SUCCESS;
}
"""
LOSSES = (("qkey", "the queue pair has another Q_Key"), ("number", "no queue pair has its number"), ("gid", "no device has its address"),
          ("receive", "the queue pair has no receive"), ("length", "it is longer than the receive"), ("mtu", "it is longer than the MTU"),
          ("state", "the state of the queue pair permits no receives"), ("group", "the group has no member"))
LINKED = "common.c -lrdmacm -libverbs"
FAULTS = (  # fault, tolerated faults, program, libraries, options
    ("kill", "freeze,refuse", KILL, "", "--check '! grep begin $RDMA_SIM_OUT1 || grep end $RDMA_SIM_OUT1'"),
    ("freeze", "kill,refuse", PAUSE, "", "--check '! grep late $RDMA_SIM_OUT1'"),
    ("power-off", "kill,freeze,refuse", POWER, "",
     "--pmem memory --check '! grep stored $RDMA_SIM_OUT1 || grep -a stored memory'"),
    ("refuse", "cut,kill,freeze", REFUSE, LINKED,
     "--until host2 --pmem memory --check './check memory' ./server memory ::"),
    ("doorbell", "cut,kill,freeze", DOORBELL, LINKED,
     "--until host2 --pmem memory --check '! grep refused $RDMA_SIM_OUT2 || ! grep -a record memory' ./server memory ::"))
SHORT = ["--check", "true", "--seeds", "1-2"]


def without_addresses(line):
    """Addresses on the stack depend on the environment."""
    return re.sub(r"\b0x[0-9a-f]{6,}", "0x", line.strip())


def commands_of_tutorial():
    """Return [(command, lines of its output)]; a line of dots matches any lines."""
    found = []
    for block in re.findall(r"\.Bd -literal -offset indent\n(.*?)\n\.Ed", PAGE.read_text(), re.S):
        for line in re.sub(r" \\e?\n *", " ", block).splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(without_addresses(line))
    return found

# A library that appends a byte to a file when it is loaded.
CONSTRUCTOR = """
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>
void *wait(void *unused) { return pause(), unused; }
__attribute__((constructor)) static void load(void) {
    pthread_t thread;
    int fd = open("%s", O_WRONLY | O_CREAT | O_APPEND, 0600);
    (void)!write(fd, "1", 1);
    close(fd);
    (void)thread;
    %s
}
"""


class Explore(unittest.TestCase):
    """Run rdma-sim explore in a directory with a copy of the examples."""

    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(tempfile.mkdtemp(prefix="rdma-sim-explore-"))
        cls.addClassCleanup(shutil.rmtree, cls.directory)
        shutil.copytree(EXAMPLES, cls.directory, dirs_exist_ok=True)
        cls.environment = dict(os.environ, PATH=f"{PROGRAM.parent}:{os.environ['PATH']}")

    def run_shell(self, command):
        """Return the output and the status of a command."""
        done = subprocess.run(command, shell=True, cwd=self.directory, env=self.environment, text=True, timeout=300,
                              check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.stdout, done.returncode

    def explore(self, *arguments):
        return self.run_shell(" ".join(["rdma-sim explore", *arguments]))

    def first_line(self, *arguments):
        """Return the first line and the status of an exploration without a finding: the rest is the summary."""
        output, status = self.explore(*arguments)
        return output[:output.index("\n") + 1], status

    def program(self, name, text, *options):
        (self.directory / f"{name}.c").write_text(text)
        self.assertEqual(self.run_shell(f"cc -g -o {name} {name}.c -pthread {' '.join(options)}"), ("", 0))
        return f"./{name}"

    def test_help_fits_a_terminal(self):
        output, status = self.run_shell("rdma-sim --help")
        self.assertEqual(status, 0)
        self.assertEqual([line for line in output.splitlines() if len(line) > 80], [])

    def test_kinds_of_faults_are_those_of_the_page(self):
        output, status = self.explore("--faults help")
        kinds = re.findall(r"^([\w-]+) ", output, re.M)
        page = PAGE.read_text()
        described = re.findall(r"^\.It Cm ([\w-]+)$", page[page.index("Fl Fl faults Ar KIND"):page.index("Fl Fl save Ar FILE")], re.M)
        self.assertEqual((status, sorted(kinds)), (0, sorted([*described, "none"])))

    def test_page_describes_each_fault(self):
        """Its actions, with their arguments, are those of --fault help."""
        output, status = self.run_shell("rdma-sim --fault help")
        help_text = output[output.index("\n\n"):output.index("\nEVENT:")]
        listed = re.findall(r"^  ([a-z-]+) [ *]+((?:\[?(?:[A-Z]+|random)\]? )+)", help_text, re.M)
        page = PAGE.with_name("rdma-sim.1").read_text()
        page = page[page.index(".Ss Faults"):page.index("The status of a program that a fault kills")]
        described = [(name, re.findall(r"[A-Z]{1,}\b|random", re.sub(r"\b(Ar|Op|Oo|Oc|Cm)\b", "", arguments)))
                     for name, arguments in re.findall(r"^\.It Cm ([a-z-]+)(.*)$", page, re.M)]
        self.assertEqual(status, 0)
        self.assertEqual(sorted((name, re.findall(r"[A-Z]+|random", arguments)) for name, arguments in listed), sorted(described))
        self.assertGreater(len(listed), 20)

    def test_doorbell_fails_only_where_it_is_a_call(self):
        """Another device cannot have the fault, and no post that fails executes its requests."""
        self.program("server", (self.directory / "server.c").read_text(), LINKED)
        (self.directory / "memory").write_bytes(bytes(4096))
        command = f"--seeds 1-60 {FAULTS[-1][4]} {self.program('doorbell', DOORBELL, LINKED)} 10.77.0.1"
        for device, fault, status in (("rxe", "doorbell", 1), ("siw", "doorbell", 1), ("mlx5", "doorbell", 2),
                                      ("mlx5", "refuse", 0)):
            with self.subTest(device, fault=fault):
                self.assertEqual(self.explore("--device", device, "--faults", fault, command)[1], status)

    def test_tutorial_has_the_output_of_its_commands(self):
        commands = commands_of_tutorial()
        self.assertEqual(len(commands), 10)
        for command, expected in commands:
            with self.subTest(command):
                output, status = self.run_shell(command)
                lines = [without_addresses(line) for line in output.splitlines()]
                self.assertEqual(status, any("FOUND" in line for line in expected), output)
                at, is_gap = 0, False
                for line in [*expected, ""]:
                    if line == "...":
                        is_gap = True
                        continue
                    self.assertIn(line, (lines + [""])[at:][:None if is_gap else 1], output)
                    at, is_gap = (lines + [""]).index(line, at) + 1, False
        # The finding that the tutorial saves.
        again = self.explore("--replay finding")
        self.assertIn("FOUND: the check fails: record 2 was stored, and is lost\n", again[0])
        self.check_weaknesses(again[0])
        self.assertEqual(again[1], 1)
        self.assertEqual(self.explore("--replay finding"), again)
        self.check_set_up(again[0])
        self.check_chart(again[0])
        self.assertEqual((self.directory / "records").read_bytes(), b"")

    def check_weaknesses(self, output):
        """The finding has a failed completion, but does not need its undefined members."""
        self.assertIn("RETRY_EXC_ERR", output)
        self.assertNotIn("weaknesses", output)
        self.assertEqual(re.findall("^strong (.*)$", (self.directory / "finding").read_text(), re.M), ["failed-completion"])

    def check_set_up(self, output):
        """The calls of each program before its first post or message are one line. --verbose shows them."""
        calls = r"ms   (host\d) (set-up: \d+ calls|(?:rdma|ibv)_\w+)"
        self.assertEqual(re.findall(calls, output)[:3], [("host1", "set-up: 2 calls"), ("host2", "set-up: 8 calls"),
                                                         ("host1", "rdma_get_cm_event")])
        whole = re.findall(calls, self.explore("--replay finding --verbose")[0])
        self.assertEqual(whole[:10], [("host1", "rdma_" + name) for name in ("bind_addr", "listen")] + [
            ("host2", name) for name in ("rdma_resolve_addr", "rdma_get_cm_event", "rdma_resolve_route", "rdma_get_cm_event",
                                         "ibv_create_cq", "ibv_create_cq", "ibv_create_qp", "rdma_connect")])
        self.assertEqual(whole[10:], re.findall(calls, output)[2:])

    def test_call_of_the_set_up_that_fails_is_shown(self):
        output, status = self.explore(f"--faults none --check true {self.program('set_up', SET_UP, LINKED)}")
        self.assertEqual(re.findall(r"ms   host1 (.*: \d+ calls|.*fails: \w+ \w+)", output),
                         ["set-up: 3 calls", "ibv_create_qp, which fails: Invalid argument"], output)
        self.assertEqual(status, 1)

    def check_chart(self, output):
        """The chart is well-formed XML with a row for each step, and refers to nothing outside."""
        self.assertEqual(self.explore("--replay finding --html chart.html")[0], output)
        text = (self.directory / "chart.html").read_text(encoding="ascii")
        rows = xml.etree.ElementTree.fromstring(text.partition("\n")[2]).findall(".//{*}li")
        shown = ["".join(row.itertext()).split() for row in rows[1:]]  # the first one has the hosts
        steps = [line for line in output.splitlines() if re.match(r" +[\d.]+ ms ", line)]
        self.assertEqual(shown, [re.sub(r"  \[(.*)\]$", r" \1", line).replace(" ms - ", " ms ").split() for line in steps])
        self.assertEqual(re.findall(r"(?:src|href|url|@import)[=( ]", text), [])
        arrows = [row for row in rows if row.get("class") == "visible" and row.find(".//{*}path") is not None]
        self.assertEqual(len(arrows), output.count(" visible: "))
        self.assertGreater(len(arrows), 0)
        output, status = self.explore("--replay finding --html missing/chart.html")
        self.assertEqual((output, status), ("rdma-sim: --html missing/chart.html: No such file or directory\n", 2))

    def test_finding_is_shown_after_eight_lines(self):
        """The first commands of rdma-sim-test(7); the first one, which installs, is left out, and gdb is replaced."""
        page = PAGE.with_name("rdma-sim-test.7").read_text()
        block = re.search(r"\.Bd -literal -offset indent\n(\$.*?)\n\.Ed", page, re.S)[1]
        lines = [line[2:] for line in block.replace(r"\(aq", "'").replace("\\e\n", "").splitlines()]
        self.assertEqual((len(lines), lines[0].split()[:3]), (8, ["sudo", "apt", "install"]))
        gdb = self.directory / "gdb_of_lines" / "gdb"
        gdb.parent.mkdir()
        gdb.write_text("#!/bin/sh\necho started >started\n")
        gdb.chmod(0o755)
        installed = "/usr/share/doc/rdma-sim/examples"
        self.assertIn(installed, lines[1])
        outputs = []
        for line in lines[2:]:
            outputs.append(self.run_shell(f"mkdir -p eight && cp -r {EXAMPLES}/. eight && cd eight && PATH={gdb.parent}:$PATH && {line}"))
        self.assertEqual(outputs[:3], [("", 0), ("", 0), ("stored 1\nstored 2\nstored 3\n", 0)])
        for output, status in outputs[3:]:
            self.assertRegex(output, r"FOUND: the check fails: record \d was stored, and is lost\n")
            self.assertEqual(status, 1)
        self.assertTrue((self.directory / "eight" / "started").exists())

    def test_workflow_finds_the_mistake(self):
        """The steps of workflow.yml pass with the corrected program, and fail with the other one."""
        text = (EXAMPLES / "workflow.yml").read_text()
        build, explore = (re.sub(r"^ {10}", "", block, flags=re.M) for block in re.findall(r"run: \|\n((?: {10}.*\n)+)", text))
        variables = dict(re.findall(r"^ {10}(\w+): (\S+)", text, re.M))
        self.assertEqual(sorted(variables), ["ASAN_OPTIONS", "TIME", "name", "path"])
        folder = self.directory / "workflow"
        shutil.copytree(EXAMPLES, folder)
        for change, expected in ("", 0), (" -DFIXED", 1):
            variables["TIME"] = "1s" if expected == 0 else "300s"  # the finding ends it
            script = f"set -e\n{build.replace(change, '') if change else build}{explore}"
            done = subprocess.run(["sh", "-c", script], cwd=folder, env={**self.environment, **variables}, text=True, check=False,
                                  timeout=600, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.assertEqual((done.returncode, (folder / "finding").exists()), (expected, expected == 1), done.stdout)

    def test_end_of_a_program_is_a_finding_with_its_cause(self):
        for name, text, expected in (
                ("for_ever", FOR_EVER, "FOUND: the programs wait for ever: host1 waits in poll"),
                ("crash", CRASH, "FOUND: host1 is ended by signal 6 (Aborted)"),
                ("fail", FAIL, "FOUND: host1 ends with status 3: the reason"),
                ("fail_in_output", FAIL_IN_OUTPUT, "FOUND: host1 ends with status 3: BAD slot 1\n"),
                ("fail_at_last", FAIL.replace('"the', '"a warning\\nthe'), "FOUND: host1 ends with status 3: the reason"),
                ("poll_for_ever", POLL_FOR_EVER, "FOUND: the programs wait for ever: host1 waits in poll\n"),
                ("fail_once", FAIL_ONCE, "FOUND: host1 ends with status 1\nIt cannot be reproduced: ")):
            with self.subTest(name):
                output, status = self.explore("--faults none", *SHORT, self.program(name, text))
                self.assertIn(expected, output)
                self.assertEqual(status, 1)
        # The programs wait for more than a day, and several times for 10 minutes of virtual time.
        for name, text in ("sleep", SLEEP), ("long_waits", LONG_WAITS):
            self.assertEqual(self.first_line("--faults none", *SHORT, self.program(name, text)),
                             ("2 schedules, 0 with faults: nothing found\n", 0))

    def test_difference_is_shown_for_the_fault_of_several_choices(self):
        """The finding needs a fault without an effect, and then another order of the programs at their ends."""
        program = self.program("in_order", IN_ORDER)
        check = "'test $RDMA_SIM_FAULTS = 0 || ! grep before $RDMA_SIM_OUT1'"
        for seed in range(50, 300):
            output = self.explore(f"--together --faults drop-cm --seeds {seed}-{seed} --check", check, program, "::", program)[0]
            if re.search(r"(?s)- fault: .* - host1 continues before host2\n.*\n\(2 choices, 1 fault; ", output):
                break
        self.assertRegex(output, r"\nThe schedule passes without this choice:\n +[\d.]+ ms - fault: drop-cm .*\n"
                                 r"The first difference \(<: the finding, >: without it\):\n<.* FOUND: ")

    def test_lost_datagram_is_shown_with_its_cause(self):
        """Its sender has a completion with success. A receive of 100 bytes has no space for the 40 of the GRH and 64 more."""
        program = self.program("lost_datagram", LOST_DATAGRAM, "-libverbs")
        for argument, why in LOSSES:
            with self.subTest(argument):
                output, status = self.explore("--faults none", *SHORT, program, argument)
                to = r"QP 16777215 at GID ff0e::7" if argument == "group" else r"QP \d+ at GID ::ffff:10\.77\.0\.\d"
                self.assertRegex(output, rf"ibv_post_send: QP \d+, send wr_id=9: \d+ bytes at 0x\w+ -> {to}, signaled")
                self.assertRegex(output, rf"host1 lost: send wr_id=9 of host1 QP \d+: {why}\n(.*\n)*.*completion of send wr_id=9: success")
                self.assertEqual((output.count(" lost: "), status), (1, 1))
        output, status = self.explore("--faults drop-datagram --seeds 1-100 --check 'test $RDMA_SIM_FAULTS = 0'", program, "none")
        self.assertRegex(output, r"- fault: drop-datagram host1( 1)?\n(.*\n)*.*host1 lost: send wr_id=9 of host1 QP \d+: the network drops it\n")
        self.assertEqual(status, 1)

    def test_run_is_over_when_the_programs_of_several_hosts_have_ended(self):
        """Also if another one waits forever, and one of theirs starts again after it was killed."""
        hosts = [self.program("for_ever", FOR_EVER), self.program("killed", KILL), self.program("short", "int main(void) {}"), "./killed"]
        commands = f"--until host2,host3,host4 {' :: '.join(hosts)}"
        for option in "", "explore --together --faults none --seeds 1-3 --check 'grep end $RDMA_SIM_OUT2 && grep end $RDMA_SIM_OUT4'":
            self.assertEqual((self.run_shell(f"rdma-sim {option or '--together'} {commands}")[1]), 0)
        self.assertEqual(self.run_shell(f"rdma-sim --together --prefix {commands}")[0].count(" end\n"), 2)
        for seed in range(100):
            output = self.explore(f"--together --faults kill --seeds {seed}-{seed} --check 'test $RDMA_SIM_FAULTS = 0' {commands}")[0]
            if " fault: kill host2 for 1s\n" in output:
                break
        self.assertRegex(output, r"the fault ends: kill host2 for 1s\n(.*\n)*.*host2 prints: end\n")
        for hosts, error in ("host2,host9", "--until: there is no host9, only 4 hosts"), (",", "--until takes all, first or hosts"):
            self.assertIn(error, self.run_shell(f"rdma-sim --until {hosts} true :: true :: true :: true")[0])

    def test_middle_of_many_steps_is_left_out(self):
        program = self.program("many_lines", MANY_LINES)
        arguments = ("--faults none", *SHORT, program)
        lines = [line.split("host1 prints: ")[-1] for line in self.explore(*arguments)[0].splitlines() if "host1 prints: " in line]
        self.assertEqual((lines[0], lines[-1]), ("line 1", "line 3000"))
        self.assertTrue(950 < len(lines) < 1000, len(lines))
        self.assertEqual(self.explore(*arguments)[0].count(f"... {3000 - len(lines)} more steps"), 1)
        self.assertEqual(self.explore("--verbose", *arguments)[0].count("host1 prints: "), 3000)

    def test_hang_has_a_line_for_each_waiting_program(self):
        program = self.program("events", EVENTS, "-g", LINKED)
        output, status = self.explore("--faults none", *SHORT, program, "::", program, "cm")
        self.assertRegex(output, r"host1 waits in ibv_get_cq_event  \[events.c:9\]\n"
                                 r".*host2 waits in rdma_get_cm_event  \[events.c:8\]\n"
                                 r".*FOUND: the programs wait for ever: host1 waits in ibv_get_cq_event, "
                                 r"host2 waits in rdma_get_cm_event\nseed 1: FOUND")
        self.assertEqual(status, 1)

    def test_event_without_acknowledgement_names_the_call(self):
        program = self.program("unacknowledged", UNACKNOWLEDGED, "-libverbs")
        output, status = self.explore("--faults none", *SHORT, program)
        self.assertIn("FOUND: the programs wait for ever: host1 waits in pthread_cond_wait after ibv_destroy_cq\n", output)
        self.assertEqual(status, 1)

    def test_replay_is_stopped_by_gdb(self):
        """In the first call after the last choice; a program in place of gdb copies the output until then."""
        tools = self.directory / "tools"
        tools.mkdir()
        gdb = tools / "gdb"
        gdb.write_text('#!/bin/sh\n[ "$1 $2" = "-q -p" ] && cat <"/proc/$3/fd/1" >at_stop && cat "/proc/$3/comm" >name\n')
        gdb.chmod(0o755)
        self.program("gdb_server", (self.directory / "server.c").read_text(), LINKED)
        self.program("gdb_status", (self.directory / "status.c").read_text(), LINKED)
        (self.directory / "gdb_records").write_bytes(b"")
        self.assertEqual(self.explore("--seeds 26-26 --faults cut --save in_gdb --until host2 --pmem gdb_records --check './check gdb_records' "
                                      "./gdb_server gdb_records :: ./gdb_status 10.77.0.1")[1], 1)
        replay = self.rdma_sim("--replay", "in_gdb")
        with_gdb = {"PATH": f"{tools}:{self.environment['PATH']}"}
        self.assertEqual(self.rdma_sim("--replay", "in_gdb", "--gdb", "host2", **with_gdb)[::2], replay[::2])
        stopped = (self.directory / "at_stop").read_text()
        self.assertTrue(stopped.endswith("stored 1\n"), stopped)
        self.assertEqual((self.directory / "name").read_text(), "gdb_status\n")
        # Without choices, in the last call.
        program = self.program("gdb_output", '#include <stdio.h>\n#include <unistd.h>\n'
                               'int main(void) { puts("one"); usleep(1); puts("two"); usleep(1); puts("three"); return 3; }')
        self.assertEqual(self.explore("--faults none --save in_gdb", *SHORT, program)[1], 1)
        self.assertEqual(self.rdma_sim("--replay", "in_gdb", "--gdb", "host1", **with_gdb)[2], 1)
        self.assertEqual((self.directory / "at_stop").read_text(), "one\ntwo\n")
        for arguments, expected in ((["--replay", "in_gdb", "--gdb", "host2"], "--gdb: host2 has no COMMAND that could end"),
                                    (["--gdb", "host1", "--check", "true", "true"], "--gdb is for --replay"),
                                    (["--replay", "in_gdb", "--gdb", "host1", "-j", "2"], "no others but --gdb")):
            output, errors, status = self.rdma_sim(*arguments, **with_gdb)
            self.assertEqual((output, errors.count("\n"), status), (b"", 1, 2))
            self.assertIn(expected, errors)
        self.assertEqual(self.rdma_sim("--replay", "in_gdb", "--gdb", "host1", PATH=str(PROGRAM.parent)),
                         (b"", "rdma-sim: --gdb needs the program gdb, which is not installed\n", 2))

    def test_defect_is_found_only_with_its_fault(self):
        self.program("server", (self.directory / "server.c").read_text(), LINKED)
        (self.directory / "memory").write_bytes(bytes(4096))
        for fault, others, text, libraries, options in FAULTS:
            command = f"{options} {self.program('has_' + fault, text, libraries)} 10.77.0.1"
            with self.subTest(fault):
                output, status = self.explore("--faults", fault, "--seeds 1-200", command)
                self.assertIn("FOUND: the check fails", output)
                self.assertEqual(status, 1)
                self.assertEqual(self.explore("--faults", others, "--seeds 1-80", command)[1], 0)

    def test_power_fails_after_the_programs_have_ended(self):
        """The program makes no call between the store and its end, so that the power cannot fail there."""
        (self.directory / "memory").write_bytes(bytes(4096))
        program = self.program("ends_at_once", POWER[:POWER.index("    for")] + "}\n")
        output, status = self.explore("--faults power-off --seeds 1-20 --pmem memory --check",
                                      "'! grep stored $RDMA_SIM_OUT1 || grep -a stored memory'", program)
        self.assertIn("FOUND: the check fails", output)
        self.assertEqual(status, 1)

    def test_crash_is_found_after_a_fault(self):
        program = self.program("crash_of_refused", CRASH_OF_REFUSED, "-libverbs")
        output, status = self.explore("--faults fail --check true --seeds 1-200", program)
        self.assertIn("FOUND: host1 is ended by signal 11 (Segmentation fault)", output)
        self.assertEqual(status, 1)

    def test_program_is_explored_after_exec(self):
        server = self.program("server", (self.directory / "server.c").read_text(), LINKED)
        client = self.program("client_of_exec", REFUSE, LINKED)
        (self.directory / "memory").write_bytes(bytes(4096))
        script = self.directory / "script"
        script.write_text('#!/bin/sh\nexec "$@"\n')
        script.chmod(0o755)
        for wrapper in ("env A=1", "stdbuf -oL", "./script", "sh -c 'exec \"$@\"' sh"):
            with self.subTest(wrapper):
                self.assertEqual(self.first_line(
                    "--faults none --seeds 1-3 --until host2 --pmem memory --check 'grep stored $RDMA_SIM_OUT2'",
                    f"{wrapper} {server} memory :: {wrapper} {client} 10.77.0.1"),
                    ("3 schedules, 0 with faults: nothing found\n", 0))

    def test_program_is_named_after_exec(self):
        program = self.program("program_with_a_long_name", "int main(void) { return 0; }")
        script = self.directory / "script"
        script.write_text('#!/bin/sh\nexec "$@"\n')
        script.chmod(0o755)
        output, status = self.explore("--faults none --seeds 1-1 --check false", f"env {program} :: @1 ./script {program} :: @1 true")
        for name in "program_with_a_long_name #1", "program_with_a_long_name #2", "true":
            self.assertIn(f"host1 {name} starts\n", output)
        self.assertEqual(status, 1)

    def test_program_without_the_library_is_refused_in_one_line(self):
        program = self.program("cleared", SET_UP, LINKED)
        for command in f"env -i {program}", f"env -u LD_LIBRARY_PATH {program}":
            output, status = self.explore(f"{' '.join(SHORT)} {command}")
            self.assertEqual((output, status), (f"rdma-sim: {program}: librdma-sim-preload.so is not loaded: keep the content of "
                                                "LD_PRELOAD and LD_LIBRARY_PATH in the script or program that changes it\n", 2))

    def test_libraries_are_loaded_once(self):
        """Unless they start a thread, which a copy of the process would not have."""
        for name, thread, expected in (("loads", "", 1), ("starts_thread", "pthread_create(&thread, NULL, wait, NULL);", 7)):
            with self.subTest(name):
                self.program(f"lib{name}.so", CONSTRUCTOR % (self.directory / f"{name}.loads", thread), "-shared -fPIC")
                program = self.program(name, "int main(void) { return 0; }", f"-Wl,--no-as-needed -L. -l{name} -Wl,-rpath,'$ORIGIN'")
                self.assertEqual(self.first_line("--check true --seeds 1-5", program),
                                 ("5 schedules, 0 with faults: nothing found\n", 0))
                self.assertEqual((self.directory / f"{name}.loads").stat().st_size, expected)

    def state(self, name):
        file = self.directory / name
        status = file.stat()
        return file.read_bytes(), status.st_ino, status.st_mode, status.st_mtime_ns, sorted(
            path.name for path in self.directory.iterdir() if path.name.startswith(name))

    def test_jobs_have_the_result_of_one(self):
        """Of a finding and of a summary; each process has its own copies of --pmem."""
        self.program("server", (self.directory / "server.c").read_text(), LINKED)
        for name in "status", "buffer":
            self.program(name, (self.directory / f"{name}.c").read_text(), LINKED)
        (self.directory / "jobs").write_bytes(bytes(4096))
        before = self.state("jobs")
        options = "--until host2 --pmem jobs --check './check jobs' ./server jobs ::"
        for arguments in (f"--faults cut --seeds 1-10 {options} ./status 10.77.0.1",
                          f"--faults kill,cut --seeds 3-12 --keep-going {options} ./status 10.77.0.1",
                          f"--faults none --search exhaustive --seeds 1-60 {options} ./buffer 10.77.0.1",
                          "--faults freeze --seeds 1-4 --check true true"):
            with self.subTest(arguments):
                output, status = self.explore(arguments)
                self.assertEqual(self.explore("--jobs 3", arguments), (output, status))
                self.assertEqual(status, "FOUND" in output)
                self.assertEqual(self.state("jobs"), before)
        begun = self.program("begun_program", FOR_EVER.replace("return", 'fclose(fopen("begun_job", "w")); return').replace(
            "#include <poll.h>", "#include <poll.h>\n#include <stdio.h>"))
        with subprocess.Popen(["rdma-sim", "explore", "-j", "2", "--pmem", "jobs", "--check", "sleep 1000", begun],
                              cwd=self.directory, env={**self.environment, "TMPDIR": str(self.directory)}) as process:
            while not (self.directory / "begun_job").exists() and process.poll() is None:
                time.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(timeout=60), 128 + signal.SIGTERM)
        self.assertEqual((self.state("jobs"), list(self.directory.glob("rdma-sim-*"))), (before, []))
        self.assertIn("calls kill(SIGSTOP), which explore does not control",
                      self.explore("-j 2", *SHORT, self.program("waits_of_jobs", WAITS, "-D_GNU_SOURCE",
                                                                "-Wno-deprecated-declarations"), "kill")[0])

    def test_jobs_replaced_file_of_pmem_is_replaced(self):
        """In each schedule and each process, also by a removal."""
        (self.directory / "folder").mkdir()
        (self.directory / "folder/jobs").write_bytes(b"before")
        before = self.state("folder/jobs")[:4]
        program = self.program("replaces", REPLACE)
        for arguments in ("folder/jobs", "folder/jobs removed"):
            with self.subTest(arguments):
                self.assertEqual(self.first_line("--jobs 2 --seeds 1-20 --faults none --check true --pmem folder/jobs", program,
                                                 arguments), ("20 schedules, 0 with faults: nothing found\n", 0))
                self.assertEqual(self.state("folder/jobs")[:4], before)
                self.assertEqual([path.name for path in (self.directory / "folder").iterdir()], ["jobs"])

    def pages_of_schedule(self, name, size):
        """Return how many pages a schedule touches or writes: what 60 need more than 20."""
        pages = []
        os.truncate(self.directory / name, size)
        for seeds in 20, 60:
            with subprocess.Popen(["rdma-sim", "explore", "--seeds", f"1-{seeds}", "--faults", "power-off", "--until", "host2",
                                   "--pmem", name, "--check", "true", "./server", name, "::", "./status-fixed", "10.77.0.1"],
                                  cwd=self.directory, env=self.environment, stdout=subprocess.DEVNULL) as process:
                os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
                written = re.search(r"^wchar: (\d+)", pathlib.Path(f"/proc/{process.pid}/io").read_text(), re.M).group(1)
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(process.returncode, 0)
            pages.append(usage.ru_minflt + int(written) // 4096)
        return (pages[1] - pages[0]) / 40

    def test_schedule_with_a_large_file_is_as_short_as_with_a_small_one(self):
        """Only ranges that are not zero are copied and compared."""
        for name, options in ("server", ""), ("status-fixed", "-DFIXED"):
            self.program(name, (self.directory / f"{name.partition('-')[0]}.c").read_text(), LINKED, options)
        (self.directory / "large").write_bytes(b"a record")
        small = self.pages_of_schedule("large", 1 << 20)
        self.assertLess(self.pages_of_schedule("large", 64 << 20), 1.2 * small)

    def test_bytes_of_the_counter_in_another_instruction_keep_it(self):
        """The counter is virtual only in a program that executes RDTSC, because that slows its turns."""
        if os.uname().machine != "x86_64":
            self.skipTest("the time stamp counter of x86-64")
        for name, instruction, expected in (("has_no_counter", "movl $0x310f310f, %%eax", "PR_TSC_ENABLE"),
                                            ("has_counter", "rdtsc", "PR_TSC_SIGSEGV")):
            program = self.program(name, COUNTER % (instruction, expected))
            self.assertEqual(self.first_line("--seeds 1-1 --faults none --check true", program)[1], 0, name)

    def test_findings_are_grouped_with_keep_going(self):
        """By what was found: the lowest seed of each kind is shortened and saved."""
        output, status = self.explore("--keep-going --save kind --seeds 0-9 --faults none --check",
                                      "'case $RDMA_SIM_SEED in [36]) echo three $RDMA_SIM_SEED; false;; 8) false; esac' true")
        self.assertEqual(status, 1)
        found = re.findall(r"^(\d+ schedules?), the first is (seed \d): FOUND: (.*)$", output, re.M)
        self.assertEqual(found, [("2 schedules", "seed 3", "the check fails: three 3"), ("1 schedule", "seed 8", "the check fails")])
        self.assertIn("\n10 schedules, 0 with faults: 2 findings\n1 distinct schedule, of ", output)
        for name, text in ("kind", "the check fails: three 3"), ("kind-2", "the check fails"):
            self.assertIn(f"again: rdma-sim explore --replay {name}\n", output)
            self.assertTrue(self.explore("--replay", name)[0].endswith(f"FOUND: {text}\n"))

    def test_time_limits_an_exploration(self):
        begin = time.monotonic()
        output, status = self.explore("--time 300ms --faults none --check true true")
        self.assertRegex(output, r"\A\d+ schedules?, 0 with faults: nothing found\n")
        self.assertEqual(status, 0)
        self.assertGreater(time.monotonic() - begin, 0.3)
        self.assertEqual(self.first_line("--time 1000s --seeds 5-6 --faults none --check true true"),
                         ("2 schedules, 0 with faults: nothing found\n", 0))

    def test_exhaustive_search_enumerates_all_choices(self):
        """Each set of choices once; the last line says whether all were run."""
        last = "exhaustive: all schedules were run"
        output, status = self.explore("--search exhaustive --faults none --check true true")
        self.assertEqual((output.splitlines()[0], output.splitlines()[-1], status), ("1 schedule, 0 with faults: nothing found", last, 0))
        sleeps = self.program("sleeps", "#include <unistd.h>\nint main(void) { return usleep(1) || usleep(1); }")
        command = f"--faults none --check true {sleeps} :: {sleeps} :: {sleeps}"
        output, status = self.explore("--search exhaustive", command)
        self.assertEqual((re.findall(r"^(\d+) (?:distinct )?schedules", output, re.M), status), (["66", "16"], 0), output)
        self.assertIn(f"\n{last}\n", output)
        for choices, seeds, expected in (
                (1, "1-999", "not all schedules were run, but all with up to 1 choice"),
                (9, "1-3", "not all schedules were run, and 2 with 1 choice"),
                (9, "1-40", "not all schedules were run, but all with up to 2 choices, and 5 with 3 choices")):
            self.assertIn(f"\nexhaustive: {expected}\n",
                          self.explore(f"--search exhaustive:{choices} --seeds {seeds}", command)[0])

    def test_summary_shows_what_was_not_reached(self):
        self.program("server", (self.directory / "server.c").read_text(), LINKED)
        self.program("status-fixed", (self.directory / "status.c").read_text(), "-DFIXED", LINKED)
        (self.directory / "summary").write_bytes(bytes(4096))
        output, status = self.explore("--faults cut,overrun --seeds 1-60 --search pct --until host2 --pmem summary "
                                      "--check './check summary' ./server summary :: ./status-fixed 10.77.0.1")
        self.assertEqual(status, 0)
        self.assertLessEqual(len(output.splitlines()), 25)
        self.assertLessEqual(max(len(line) for line in output.splitlines()), 80)
        self.assertRegex(output, r"\n  cut +\d+  \d+ of \d+ .* RETRY_EXC_ERR\n")
        self.assertRegex(output, r"\ncalls at which no fault occurred: ibv_\w+, ")
        self.assertRegex(output, r"\ncompletions never seen: LOC_LEN_ERR, ")
        self.assertRegex(output, r"\nweaknesses without an effect: .*fence")
        schedules, bounded, steps, threads, bound = re.search(
            r"^priorities alone: (\d+) schedules, (\d+) with at most k = (\d+) steps, n = (\d+) threads;\n"
            r".*\n    (\S+) for d = 2, ", output, re.M).groups()
        self.assertEqual((schedules, threads), ("30", "3"))  # the clock is one
        self.assertAlmostEqual(float(bound), 1 - (1 - 1 / int(threads) / int(steps)) ** int(bounded), delta=float(bound) / 10)
        output = self.explore("--faults remove --seeds 1 --check true true")[0]
        self.assertIn("\nfaults that never occurred: remove\n", output)

    def test_original_of_pmem_is_restored_after_each_end(self):
        """The original is back after each end; a killed exploration leaves it under another name."""
        file = self.directory / "original"
        file.write_bytes(bytes(range(256)) * 512)
        file.chmod(0o640)
        (self.directory / "link").symlink_to("original")
        before = self.state("original")
        change = "sh -c 'printf changed > original'"
        for end, status, expected in (
                (f"--check true {change}", 0, "nothing found"),
                (f"--check false {change}", 1, "FOUND: the check fails"),
                (f"--check ./missing {change}", 2, "./missing: not found"),
                (f"--check 'if; then' {change}", 2, "Syntax error"),
                (f"--check 'printf changed > original; exit 127' {change}", 2, "--check '"),
                ("--check true sh -c 'printf changed > original; kill -STOP $$'", 2, "sh calls kill(SIGSTOP)"),
                ("--check true rm original", 0, "nothing found"),
                (f"--check false --save /dev/full {change}", 2, "--save /dev/full: No space left"),
                (f"--check true --pmem original {change}", 2, "original.rdma-sim-original: move it back"),
                (f"--check true --pmem . {change}", 2, "--pmem .: Is a directory")):
            for pmem in "original", "link":
                with self.subTest(end, pmem=pmem):
                    output, ended = self.explore("--seeds 1-2 --faults none --pmem", pmem, end)
                    self.assertIn(expected, output)
                    self.assertEqual((ended, self.state("original")), (status, before), output)
        # No space for the copy.
        self.assertEqual(self.run_shell(f"ulimit -f 240; rdma-sim explore --pmem original --check true {change}"),
                         ("rdma-sim: --pmem original: File too large\n", 2))
        self.assertEqual(self.state("original"), before)
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL:
            with self.subTest(number):
                command = ["rdma-sim", "explore", "--pmem", "original", "--check",
                           "echo changed > original; echo x > begun; exec sleep 1000", "true"]
                with subprocess.Popen(command, cwd=self.directory,
                                      env={**self.environment, "TMPDIR": str(self.directory)}) as process:
                    while not (self.directory / "begun").exists() and process.poll() is None:
                        time.sleep(0.01)
                    process.send_signal(number)
                    ended = process.wait(timeout=60)
                (self.directory / "begun").unlink()
                if number == signal.SIGKILL:
                    output, _ = self.explore("--pmem original --check true true")
                    self.assertIn("original.rdma-sim-original: move it back", output)
                    (self.directory / "original.rdma-sim-original").rename(file)
                else:
                    self.assertEqual(ended, 128 + number)
                self.assertEqual(self.state("original"), before)

    def rdma_sim(self, *arguments, cwd=None, **variables):
        done = subprocess.run(["rdma-sim", "explore", *arguments], cwd=cwd or self.directory, check=False, timeout=300,
                              env={**self.environment, **variables}, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return done.stdout, done.stderr.decode(), done.returncode

    def test_saved_finding_has_every_byte_of_an_argument(self):
        for check in (b"true\nfalse", b"false\n", b"false # \xff\xfe \\ \\x41 \" ' \t \x01 \xc3\xa4", b"  false ",
                      b"false # " + 100000 * b"x"):
            for argument in (b"", b"a\nchoice 1 1", b"\xff\\", b" "):
                with self.subTest(check=check[:30], argument=argument):
                    saved = self.rdma_sim(*SHORT[2:], "--save", "odd", "--check", check, "echo", argument)
                    again = self.rdma_sim("--replay", "odd")
                    self.assertEqual((saved[2], again[1:]), (1, ("", 1)), saved)
                    steps = saved[0][:saved[0].index(b"seed 1: FOUND")]
                    self.assertTrue(again[0].startswith(steps), again[0])

    def test_saved_finding_has_environment_and_memory(self):
        elsewhere = self.directory / "elsewhere"
        elsewhere.mkdir()
        (self.directory / "content").write_bytes(bytes(5000) + b"wrong")
        script = self.directory / "script_of_finding"
        script.write_text("#!/bin/sh\nread -r word <content\ncase $BUG$word in *1*wrong) exit 4; esac\n")
        script.chmod(0o755)
        arguments = ["--check", "true", "--faults", "none", "--pmem", "content", "--save", "variables",
                     "./script_of_finding"]
        self.assertEqual(self.rdma_sim(*arguments, BUG="1", MY_TOKEN="private")[2], 1)
        text = (self.directory / "variables").read_text()
        self.assertNotIn("private", text)
        self.assertEqual((self.directory / "variables").stat().st_mode & 0o077, 0)
        (self.directory / "content").write_bytes(b"changed")
        before = self.state("content")
        output, errors, status = self.rdma_sim("--replay", "../variables", cwd=elsewhere, MY_TOKEN="other", NEW="2")
        self.assertEqual((output.splitlines()[-1], status), (b"FOUND: host1 ends with status 4", 1), errors)
        self.assertEqual(errors, f"rdma-sim: since the finding was saved: it runs in {self.directory}; "
                         "the variable BUG is set as saved; the variable MY_TOKEN differs; "
                         "the variable NEW was not set; content had another content, which is used\n")
        self.assertEqual(self.state("content"), before)
        # A signal is a finding too, but not the saved one.
        script.write_text("#!/bin/sh\nkill -SEGV $$\n")
        output, errors, status = self.rdma_sim("--replay", "variables", BUG="1", MY_TOKEN="private")
        self.assertEqual((output.splitlines()[-1], status),
                         (b"The saved finding is another one: host1 ends with status 4", 1))
        self.assertIn("./script_of_finding has changed", errors)
        # No choice was saved, so all are reached.
        script.write_text("#!/bin/sh\n")
        output, errors, status = self.rdma_sim("--replay", "variables", BUG="1", MY_TOKEN="private")
        self.assertEqual((output, status), (b"       0.000 ms   host1 starts\n       0.000 ms   host1 ends with status 0\n"
                                            b"nothing found; 0 of 0 saved choices were reached\n", 0))

    def test_choice_is_reported_if_the_replay_does_not_reach_it(self):
        arguments = ["--faults", "kill", "--seeds", "1-200", "--save", "killed_finding", "--check",
                     "! grep begin $RDMA_SIM_OUT1 || grep end $RDMA_SIM_OUT1", self.program("killed_then", KILL)]
        self.assertEqual(self.rdma_sim(*arguments)[2], 1)
        shutil.copy("/bin/true", self.directory / "killed_then")
        output, errors, status = self.rdma_sim("--replay", "killed_finding")
        self.assertRegex(output.decode(), r"\nnothing found; 0 of [1-9]\d* saved choices were reached\n\Z")
        self.assertIn("./killed_then has changed", errors)
        self.assertEqual(status, 3)
        saved = (self.directory / "killed_finding").read_text()
        for text, expected in ((saved.replace("end\n", ""), "or not all of it"), (saved[:-1] + "x\n", "or not all of it"),
                               (saved.replace("seed ", "seek "), "not a finding that --save"), ("", "not a finding"),
                               ("rdma-sim explore 1\nargument true\nseed 1\n", "release 1.5 saved this finding")):
            (self.directory / "bad").write_text(text)
            output, errors, status = self.rdma_sim("--replay", "bad")
            self.assertIn(expected, errors)
            self.assertEqual((output, errors.count("\n"), status), (b"", 1, 2))

    def test_endless_wait_after_a_fault_is_a_finding_of_the_check_only(self):
        """It is a finding only if the check tests for it."""
        waits = self.program("waits_after_fault", PAUSE.replace('puts("late")', "pause()"))
        command = f"--faults pause --seeds 1-100 {waits}"
        self.assertEqual(self.explore("--check true", command)[1], 0)
        output, status = self.explore("--check 'test $RDMA_SIM_STATUS1 != killed'", command)
        self.assertIn("- fault: freeze host1 for 10s\n", output)
        self.assertEqual(status, 1)

    def test_check_has_the_documented_variables(self):
        check = "'test $RDMA_SIM_FAULTS = 0 -a $RDMA_SIM_STATUS1 = 0 && grep -qx hello $RDMA_SIM_OUT1'"
        self.assertEqual(self.explore("--faults none --seeds 1-2 --check", check, "echo hello")[1], 0)
        output, status = self.explore("--faults none --seeds 1-2 --check", check, "echo bye")
        self.assertIn("host1 prints: bye", output)
        self.assertEqual(status, 1)
        check = "'test $RDMA_SIM_SEED = 0 && grep -qx failure $RDMA_SIM_ERR1'"
        self.assertEqual(self.first_line("--faults none --seeds 0 --check", check, "sh -c 'echo failure >&2'"),
                         ("1 schedule, 0 with faults: nothing found\n", 0))
        self.assertEqual(self.explore("--faults none --seeds 0 --check 'kill -KILL $$' true")[1], 1)
        check = "'test $RDMA_SIM_STATUS1 != killed -o $RDMA_SIM_FAULTS = 0'"
        output, status = self.explore("--faults kill --seeds 1-200 --check", check, self.program("killed", KILL))
        self.assertRegex(output, "- fault: kill host1( for 1s)?\n")
        self.assertEqual(status, 1)

    def test_variables_have_the_names_of_release_1_5_as_well(self):
        names = ("OUT1", "ERR1", "STATUS1", "FAULTS", "SEED", "HOST", "ADDR", "ADDR_host1")
        check = " -a ".join(f'"$RDMA_SIM_{name}" = "$RPMA_SIM_{name}"' for name in names[:5])
        program = " -a ".join(f'-n "$RPMA_SIM_{name}" -a "$RDMA_SIM_{name}" = "$RPMA_SIM_{name}"' for name in names[5:])
        output = self.run_shell("RPMA_SIM_LEFT=1 rdma-sim explore --faults none --seeds 0 --save old --check " f"'test -n \"$RPMA_SIM_OUT1\" -a {check} -a 1 = 2' "
                                f"sh -c 'test {program}'")
        self.assertIn("FOUND: the check fails", output[0])
        self.assertNotIn("host1: sh ended with status", output[0])
        self.assertNotIn("variable RPMA_SIM_", (self.directory / "old").read_text())
        self.assertEqual(self.first_line("--faults none --seeds 0 --check", f"'test -n \"$RPMA_SIM_OUT1\" -a {check}'",
                                      f"sh -c 'test {program}'"), ("1 schedule, 0 with faults: nothing found\n", 0))

    def test_program_of_go_is_refused_by_a_system_that_cannot_dispatch_its_calls(self):
        """PR_SET_SYSCALL_USER_DISPATCH fails before Linux 5.11."""
        program = self.program("go", '__attribute__((section(".go.buildinfo"), used)) static char info[] = "Go";\nint main(void) {}\n')
        self.program("older", "#include <unistd.h>\n#include <sys/syscall.h>\nint prctl(int option, long a, long b, long c, long d) {"
                              " return option == 59 ? -1 : (int)syscall(SYS_prctl, option, a, b, c, d); }", "-shared -fPIC -D_GNU_SOURCE")
        explore = f"rdma-sim explore --faults none --seeds 1-1 --check true {program}"
        output, status = self.run_shell(f"LD_PRELOAD=$PWD/older {explore}")
        self.assertRegex(output, r"\Ardma-sim: \S+: is a program of Go, whose threads wait without the C library, which explore controls on "
                                 r"x86-64 with Linux 5.11 or later\n\Z")
        self.assertEqual(status, 2)
        if os.uname().machine == "x86_64":
            self.assertEqual(self.run_shell(explore)[1], 0)

    def test_invalid_command_is_refused_in_one_line(self):
        static = self.program("static", CRASH, "-static")
        (self.directory / "no-finding").write_text("something\n")
        for arguments, expected in (
                ("echo", "explore needs --check CHECK"),
                ("--check true", "a COMMAND is missing"),
                ("--check true --seeds 9-1 echo", "--seeds takes a number from 9"),
                ("--check true --seeds x echo", "--seeds takes a number"),
                ("--check true --search fast echo", "--search takes mixed, random, pct or exhaustive[:CHOICES], not 'fast'"),
                ("--check true --search exhaustive:0 echo", "--search exhaustive:CHOICES takes a number from 1 to"),
                ("--check true --jobs 0 echo", "--jobs takes a number from 1 to 1024, not '0'"),
                ("--check true --time 10 echo", "--time takes a time, such as 10s, not '10'"),
                ("--check true --live 10 echo", "--live takes a time, such as 10s, not '10'"),
                ("--check true --seeds 1-2x echo", "--seeds takes a number from 1"),
                ("--check true --seeds 1- echo", "--seeds takes a number from 1"),
                ("--check no-such-command echo", "--check 'no-such-command': "),
                ("--replay no-finding echo", "--replay takes the arguments from FILE, and no others but --gdb, --html and --verbose"),
                ("--check true --faults fire echo", "--faults: there is no kind 'fire': --faults help lists them"),
                ("--check true --faults doorbell --device mlx5 echo", "--faults doorbell: no host, device or file"),
                ("--check true --faults power-off echo", "--faults power-off: no host, device or file of --pmem"),
                ("--check true --faults cut echo", "--faults cut: no host, device or file of --pmem can"),
                ("--check true --fault '1s kill host1' echo", "explore chooses faults itself"),
                ("--check ./missing echo", "./missing"),
                ("--check true --save /missing/file false", "--save /missing/file: No such file"),
                ("--replay missing", "--replay missing: not a finding"),
                ("--replay no-finding", "--replay no-finding: not a finding"),
                (f"--check true {static}", "linked statically")):
            with self.subTest(arguments):
                output, status = self.explore(arguments)
                self.assertIn(expected, output)
                self.assertEqual(status, 2, output)
                self.assertRegex(output.splitlines()[-1], "^rdma-sim: ")
        for option in "--seeds 1-2", "-j 2", "--keep-going":
            output, status = self.run_shell(f"rdma-sim {option} echo")
            self.assertRegex(output, r"\Ardma-sim: --[a-z-]+ is for rdma-sim explore\n\Z")
            self.assertEqual(status, 2)
        waits = self.program("waits", WAITS, "-D_GNU_SOURCE", "-Wno-deprecated-declarations")
        for call in re.findall(r"CALL\((\w+), [ICg]", WAITS):
            with self.subTest(call):
                output, status = self.explore(*SHORT, waits, call)
                self.assertRegex(output, rf"waits calls {call}\(\w+\), which explore does not control")
                self.assertEqual(status, 2)
        output, status = self.explore(*SHORT, "--faults none", "--check false", waits, "clock_nanosleep on TAI")
        self.assertRegex(output, r"\n +5000\.\d+ ms +host1 ends with status 0\n")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
