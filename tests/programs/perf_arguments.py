#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Tests the arguments and option descriptions of rpma-perf: perf_arguments.py PROGRAM SOURCE VERSION

perf.cc has a table of conflicting settings (Plan::conflict()); the tables here have the other errors.
"""

import pathlib
import re
import sys

sys.dont_write_bytecode = True

import harness
from harness import HELP_COLUMNS, HELP_LINES, expect, expect_one_line, run, test

PROGRAM, SOURCE, VERSION = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
COMPLETION = SOURCE / "programs/completion/rpma-perf"
USAGE = 2
OPERATIONS = ["write", "read", "flush-visibility", "flush-persistent", "atomic-write", "send",
              "ping-pong", "ping-pong-rcq", "fetch-add", "compare-swap", "connect"]
# Options that users of perftest and fio try, and a part of the error message.
OTHER_TOOLS = [
    ("--iters 1000", "perftest's --iters is -n, --count here"),
    ("--iters=1000", "perftest's --iters is -n, --count here"),
    ("--all", "is --size 2:8388608 here"),
    ("--qp=4", "is -c, --connections here"),
    ("--tx-depth 128", "is -d, --depth here"),
    ("--report_gbits", "always have Gbit/s"),
    ("--ib-dev=mlx5_0", "ADDRESS chooses the device"),
    ("--bidirectional", "is --both here"),
    ("--rdma_cm", "connection manager is always used"),
    ("-A FETCH_AND_ADD", "is -o fetch-add or compare-swap here"),
    ("-y 1000", "is --rate here, in operations"),
    ("--post_list 4", "is --batch here"),
    ("--out_json", "is -j, --json here"),
    ("-m 4096", "perftest's -m: the MTU of the port is used here"),
    ("-o 16", "perftest's -o: -d, --depth bounds outstanding reads here"),
    ("-w 2.5", "perftest's -w is --rate here, in operations"),
    ("--rw=randread", "fio's --rw is -o, --operation here; --random and --reads change it"),
    ("--bs=4k", "fio's --bs is -b, --size here"),
    ("--iodepth=32", "fio's --iodepth is -d, --depth here"),
    ("--runtime 10", "fio's --runtime is -D, --duration here"),
    ("--numjobs=4", "fio's --numjobs is -c, --connections here, with -t, --threads"),
    ("--rwmixread=70", "fio's --rwmixread is --reads here"),
    ("--direct=1", "fio's --direct: -o flush-persistent makes data persistent here"),
    ("--filename=/dev/dax0.0", "fio's --filename is --memory of the server here"),
    ("--output-format=json", "fio's --output-format is -j, --json here"),
    ("--verify=crc32c", "fio's --verify has no value here"),
    ("--serverip=192.168.0.1", "fio's --serverip is ADDRESS here"),
]
# All options in the --help of the programs of perftest 4.5 that have another meaning, or none,
# here.
PERFTEST = """--CPU-freq --MGID --aes_block_size --aes_xts --all --atomic_type --bidirectional --burst_size --client
    --com_rdma_cm --connection --cpu_util --cq-mod --credentials_path --data_enc_key_app_path --data_enc_keys_number
    --dest_ip --dest_mac --dest_port --disable_pcie_relaxed --dlid --dont_xchg_versions --dualport --encrypt_on_tx
    --ethertype --events --flow_label --flows --flows_burst --force-link --gid-index --hop_limit --ib-dev --ib-port
    --inline_recv --inline_size --ipv6 --iters --kek_path --latency_gap --limit_bw --limit_msgrate
    --log_active_dci_streams --log_dci_streams --mac_fwd --margin --mcg --mmap --mmap-offset --mr_per_qp --mtu --noPeak
    --odp --out_json --out_json_file --outs --perform_warm_up --pkey_index --post_list --promiscuous --qp --qp-timeout
    --rate_limit --rate_limit_type --rate_units --raw_ipv6 --raw_mcast --rdma_cm --recv_post_list --reply_every
    --report-both --report-counters --report-cycles --report-histogram --report-per-port --report-unsorted
    --report_gbits --retry_count --reversed --run_infinitely --rx-depth --sig_before --sl --sniffer --source_ip
    --source_mac --source_port --tclass --tcp --tos --tx-depth --typical_pkt_size --use-srq --use_hugepages
    --use_old_post_send --use_rss --vector --vlan_en --vlan_pcp --wait_destroy
    -A -B -C -E -F -G -H -I -J -K -L -M -N -O -P -Q -R -S -T -U -W -X -Y -Z -a -f -g -k -l -q -r -u -v -x -y -z"""
# Arguments that are refused, and a part of the error message.
REFUSED = [
    ([], "ADDRESS"),
    (["--server"], "ADDRESS"),
    (["host", "other"], "only one ADDRESS"),
    (["--no-such-option", "host"], "no-such-option"),
    (["-k", "host"], "'-k'"),
    (["--size"], "size"),
    (["--poll=1", "host"], "poll"),
    (["--operation", "fetch", "host"], "fetch"),
    (["--operation", "", "host"], '""'),
    (["--operation", "write,", "host"], '""'),
    (["--operation", "all,write,read", "host"], "more operations than exist"),
    (["--size", "64,", "host"], "--size"),
    (["--size", "0", "host"], "--size"),
    (["--size", "-1", "host"], "--size"),
    (["--size", "64kb", "host"], "--size"),
    (["--size", "k", "host"], "--size"),
    (["--size", "64T", "host"], "--size"),
    (["--size", "2G", "host"], "--size"),
    (["--size", "1048577K", "host"], "--size"),
    (["--size", "18014398509481985K", "host"], "--size"),
    (["--size", "64:32", "host"], "--size"),
    (["--size", ":", "host"], "--size"),
    (["--size", "1073741825", "host"], "--size"),
    (["--size", ",".join(["8"] * 65), "host"], "at most 64 sizes"),
    (["--depth", "0", "host"], "--depth"),
    (["--depth", "4097", "host"], "--depth"),
    (["--batch", "0", "host"], "--batch"),
    (["--elements", "33", "host"], "--elements"),
    (["--inline", "4097", "host"], "--inline"),
    (["--connections", "1025", "host"], "--connections"),
    (["--threads", "65", "host"], "--threads"),
    (["--duration", "0", "host"], "--duration"),
    (["--duration", "nan", "host"], "--duration"),
    (["--duration", "1s", "host"], "--duration"),
    (["--duration", "1", "--count", "1", "host"], "exclude"),
    (["--duration", ".5", "host"], "--duration"),
    (["--duration", "86400.1", "host"], "--duration"),
    (["--count", "0", "host"], "--count"),
    (["--count", "1099511627777", "host"], "--count"),
    (["--warmup", "x", "host"], "--warmup"),
    (["--warmup", "1099511627777", "host"], "--warmup"),
    (["--port", "0", "host"], "--port"),
    (["--port", "65536", "host"], "--port"),
    (["--port", "http", "host"], "--port"),
    *((["--operation", "connect", *option, "host"], "one at a time") for option in
      (["--depth", "2"], ["--elements", "2"], ["--inline", "8"], ["--verify"], ["--region", "1M"], ["--both"],
       ["--rate", "1"])),
    (["--operation", "compare-swap", "--region", "1M", "host"], "--region is for reads and writes"),
    (["--reconnect", "--count", "9", "host"], "--reconnect measures for a --duration"),
    (["--reconnect", "--verify", "host"], "--reconnect measures for a --duration"),
    (["--reconnect", "--both", "host"], "--reconnect measures for a --duration"),
    (["--memory", "/dev/null", "host"], "is for the server"),
    (["--once", "host"], "is for the server"),
    (["--direct-write", "host"], "is for the server"),
    (["--random", "host"], "needs a --region"),
    (["--region", "63", "host"], "smaller than one operation"),
    (["--region", "1M", "--operation", "send", "host"], "--region is for reads and writes"),
    (["--region", "1M", "--verify", "host"], "exclude --verify and --prepared"),
    (["--region", "3G", "--connections", "1024", "--threads", "2", "host"], "tebibyte"),
    (["--reads", "101", "host"], "--reads"),
    (["--reads", "50", "--operation", "read", "host"], "--reads applies to writes alone"),
    (["--reads", "50", "--operation", "flush-visibility", "host"], "--reads applies to writes alone"),
    (["--reads", "50", "--batch", "2", "--prepared", "host"], "exclude --verify and --prepared"),
    (["--rate", "1000000001", "host"], "--rate"),
    (["--both", "--operation", "send", "host"], "--both is for writes"),
    (["--both", "--operation", "flush-persistent", "host"], "--both is for writes"),
    (["--both", "--verify", "host"], "--both is for writes"),
    (["--interval", "0", "host"], "--interval"),
    (["--interval", "x", "host"], "--interval takes seconds"),
    *((words.split() + ["host"], part) for words, part in OTHER_TOOLS),
    *(([option, "host"], f"(perftest's {option}") for option in PERFTEST.split()),
    (["--size", "2G", "host"], '"2G"\n'), # no hint at perftest's -b, because it is a number
    # options of earlier releases
    *((words, "rpma-perf 1.5's --ledger: rpma-check --power-cut and --verify replace it") for words in
      (["--ledger", "file", "host"], ["--ledger=file", "host"], ["--ledger", "file", "--ring", "64", "host"],
       ["--verify", "--ledger", "file", "--memory", "file"], ["--server", "--ledger", "file", "host"])),
    (["--ring", "64", "host"], "rpma-perf 1.5's --ring: rpma-check --power-cut"),
    # input with control characters: one line, with the reason after it
    (["--size", "1\n2\x1b[2J", "host"], r'not "1\n2\x1b[2J"'),
    (["--size", "\u009b", "-b", "\u009b\x7f", "host"], r'not "\xc2\x9b\x7f"'),
    (["--size", "9" * 5000, "host"], '9..."'),
    (["--operation", "x\ny", "host"], r'"x\ny"'),
    (["--no\nsuch", "host"], r"no\nsuch"),
    # options that users of perftest try
    (["-q", "4", "host"], "-q is -c, --connections here"),
    (["-l", "4", "host"], "-l is --batch here"),
    (["-I64", "host"], "-I is -i, --inline here"),
    (["-a", "host"], "--size 2:8388608"),
    (["-R", "host"], "connection manager is always used"),
    (["-b", "host"], "perftest's -b"),
    (["-d", "mlx5_0", "host"], "ADDRESS chooses the device"),
    (["-c", "RC", "host"], "-q is -c here"),
    (["-t", "128", "host"], "-t is -d, --depth here"),
    (["-s", "65536", "host"], "-s is -b, --size here"),
    (["--server", "--direct-write", "host"], "add --memory"),
    (["--limit", "8192", "host"], "is for the server"),
    (["--server", "--limit", "4095", "host"], "--limit"),
    (["--server", "--limit", "1099511627777", "host"], "--limit"),
    (["--server", "--limit", "8192", "--memory", "file", "host"], "--limit is for DRAM"),
    *((["--server", *option, "host"], "is for the client") for option in
      (["--operation", "write"], ["--size", "8"], ["--depth", "2"], ["--batch", "2"],
       ["--prepared"], ["--elements", "2"], ["--inline", "8"], ["--connections", "2"],
       ["--threads", "2"], ["--duration", "1"], ["--count", "1"], ["--warmup", "1"], ["--poll"],
       ["--verify"], ["--region", "1M"], ["--random"],
       ["--reads", "1"], ["--both"], ["--rate", "1"], ["--interval", "1"], ["--plot", "file"], ["--reconnect"],
       ["--json"])),
]


def options_of_help():
    return set(re.findall(r"(?<![\w-])--?[A-Za-z0-9][\w-]*", run(PROGRAM, "--help").stdout))


def offered(*words):
    """bash's completions of the last word."""
    return set(harness.completed(COMPLETION, "rpma-perf", *words))


@test("wrong arguments: status 2 and one line that names the argument, before any other action")
def arguments():
    for words, part in REFUSED:
        done = run(PROGRAM, *words)
        expect_one_line(done, USAGE, words)
        expect((done.stderr.startswith("rpma-perf: "), part in done.stderr), (True, True), done.stderr)


@test("--help fits a terminal, names the operations and equals that of -h; --version prints the versions")
def helps():
    done = run(PROGRAM, "--help")
    expect((done.returncode, done.stderr), (0, ""), "--help")
    lines = done.stdout.splitlines()
    expect(0 < len(lines) <= HELP_LINES, True, f"--help has {len(lines)} lines")
    expect([line for line in lines if len(line) > HELP_COLUMNS], [], "lines that are too long")
    expect([name for name in OPERATIONS if not re.search(rf"[ (]{name}[, ]", done.stdout)], [], "not named")
    expect(run(PROGRAM, "-h").stdout, done.stdout, "-h")
    versions = run(PROGRAM, "--version")
    expect((versions.returncode, versions.stdout, versions.stderr),
           (0, f"rpma-perf {VERSION}, librpma {VERSION}\n", ""), "--version")


@test("bash offers all options, long and short, and all operations, and nothing else")
def completion():
    expect(offered("-"), options_of_help(), "options")
    expect(offered("--s"), {option for option in options_of_help() if option.startswith("--s")}, "after --s")
    expect(offered("-o", ""), {*OPERATIONS, "all"}, "after -o")
    expect("write,read" in offered("--operation", "write,r"), True, "a list of operations is continued")


@test("the page describes each option, and no other, and each operation")
def manual():
    page = (SOURCE / "man" / "rpma-perf.1").read_text(encoding="utf-8")
    found = {("--" if long else "-") + name
             for item in re.findall(r"^\.It (Fl .*)$", page, re.MULTILINE)
             for long, name in re.findall(r"Fl (Fl )?(?!Fl)(\S+)", item)}
    expect(found, options_of_help(), "options")
    expect([name for name in OPERATIONS if f".It Cm {name}\n" not in page], [], "not described")


sys.exit(harness.main())
