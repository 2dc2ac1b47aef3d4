#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""
perf_report.py PROGRAM VERSION: compares the output of rpma-perf with values that were calculated by
hand, for the results in perf_report.cc and for the settings.

Three latencies of 400, 500 and 3,000 ns: the median is 500, and p99 is the maximum. The bucket of
600,000 ns ends with 524,288 + 37 * 2,048 - 1. 3 operations in 1.5 ms are 2,000 per second; with 64
bytes, 0.122 MiB.
"""

import difflib
import hashlib
import json
import os
import pty
import re
import subprocess
import sys
import xml.etree.ElementTree

sys.dont_write_bytecode = True

from harness import expect, expect_one_line, run

PROGRAM, VERSION = sys.argv[1:]

HOST = "192.0.2.1"
# Arguments, their text above the table, and the settings of the JSON that differ from the default.
LOADS = [
    (["--depth", "16", "--batch", "4", "--prepared", "--elements", "2", "--inline", "64", "--connections", "7",
      "--threads", "5", "--verify", "--port", "7471"],
     "depth 16, batch 4 prepared, elements 2, inline 64, connections 7, threads 5, waiting for events",
     {"depth": 16, "batch": 4, "prepared": True, "elements": 2, "inline": 64, "connections": 7, "threads": 5,
      "verify": True, "duration_s": "3.000"}),
    (["--region", "1M", "--random", "--reads", "30", "--rate", "1000", "--poll", "--warmup", "5", "--reconnect",
      "--interval", "0.5", "--duration", "2.5"],
     "depth 1, batch 1, elements 1, inline 0, connections 1, threads 1, polling, region 1048576 at random, "
     "reads 30 %, rate 1000",
     {"poll": True, "region": 1048576, "random": True, "reads": 30, "rate": 1000, "reconnect": True, "warmup": 5,
      "duration_s": "2.500"}),
    (["--both", "--region", "5G", "--count", "9"],
     "depth 1, batch 1, elements 1, inline 0, connections 1, threads 1, waiting for events, region 5368709120, "
     "both directions",
     {"both": True, "region": 5368709120, "count": 9}),
]
DEFAULTS = {"depth": 1, "batch": 1, "prepared": False, "elements": 1, "inline": 0, "connections": 1, "threads": 1,
            "poll": False, "verify": False, "region": 0, "random": False, "reads": 0, "both": False, "rate": 0,
            "reconnect": False, "warmup": 100}
TABLE = """\
client: librpma {version}, mlx5_0, Linux {kernel}
server: librpma 1.4.0, rxe1, Linux 7.3, memory devdax{stated}
{settings}

                                      median      p99    p99.9       max                             CPU/op  server
operation           bytes operations       us       us       us        us      op/s    MiB/s  Gbit/s      us      us
flush-persistent       64         3     0.50     3.00     3.00      3.00      2000     0.12   0.001    1.00    0.50  verified  persistent as stated
read              1048576         1     1.00  5000.00  5000.00   5000.00        14    14.00   0.117    1.00    0.00
send                 4096   1000000   600.06  1000.00  1000.00   1000.00    400000  1562.50  13.107   12.50    0.00  gaps 2, longest 4.400 s, total 4.500 s
connect                 0         0     0.00     0.00     0.00      0.00         0     0.00   0.000    0.00    0.00
  to 1.50 s            64      3000                                           3000     0.18   0.002
"""
def latency(*figures):
    return dict(zip(("min", "mean", "median", "p90", "p99", "p99_9", "max"), figures))


def interval(end, operations, rate, mean, greatest):
    return {"end_s": end, "operations": operations, "operations_per_second": rate, "mean_us": mean,
            "max_us": greatest}


def result(operation, size, operations, seconds, latency_us, rate, bandwidth, gbits, client, server, verified,
           persistence, intervals=(), server_rate=None, gaps=(), without="0.000"):
    whole = {"operation": operation, "size": size, "operations": operations, "seconds": seconds,
             "latency_us": latency_us, "operations_per_second": rate,
             "bandwidth_mib_per_second": bandwidth, "bandwidth_gbit_per_second": gbits,
             "cpu_us_per_operation": {"client": client, "server": server}, "verified": verified,
             "persistence": persistence, "gaps": [{"begin_s": begin, "seconds": length} for begin, length in gaps],
             "without_service_s": without, "intervals": list(intervals)}
    return {**whole, "server_operations_per_second": server_rate} if server_rate else whole


RESULTS = [
    result("flush-persistent", 64, 3, "0.001500",
           latency("0.400", "1.300", "0.500", "3.000", "3.000", "3.000", "3.000"),
           "2000.000", "0.122", "0.001", "1.000", "0.500", True, "stated",
           [interval("0.001", 1, "2000.000", "0.400", "0.400"), interval("0.001", 1, "2000.000", "3.000", "3.000"),
            interval("0.002", 1, "2000.000", "0.500", "0.500")]),
    result("read", 1 << 20, 1, "0.500000", latency("1.000", "2500.500", "1.001", *["5000.000"] * 4), "14.000",
           "14.000", "0.117", "1.000", "0.000", False, "not stated", [], "12.000"),
    result("send", 4096, 1000000, "2.500000",
           latency("600.000", "800.002", "600.063", *["1000.004"] * 4),
           "400000.000", "1562.500", "13.107", "12.500", "0.000", False, "not stated",
           [interval("1.000", 400000, "400000.000", "600.000", "900.000"),
            interval("2.000", 0, "0.000", "0.000", "0.000"),
            interval("2.500", 1, "2.000", "5.000", "5.000")],
           gaps=[("1.000", "4.400"), ("2.250", "0.100")], without="4.500"),
    result("connect", 0, 0, "0.000000", latency(*["0.000"] * 7), *["0.000"] * 5, False, "not stated"),
]


def report(arguments, settings):
    """The expected JSON, with gaps and intervals if the arguments request them."""
    left_out = ([] if "--reconnect" in arguments else ["gaps", "without_service_s"]) + \
        ([] if "--interval" in arguments else ["intervals"])
    return {
        "rpma_perf": VERSION, "protocol": 4, "date": "DATE", "address": HOST,
        "port": "7471" if "--port" in arguments else "7204",
        "client": {"librpma": VERSION, "kernel": os.uname().release, "device": "mlx5_0", "memory": "dram"},
        "server": {"librpma": "1.4.0", "kernel": "7.3", "device": "rxe1", "memory": "devdax"},
        "direct_write_stated": "--both" not in arguments, "settings": {**DEFAULTS, **settings},
        "results": [{key: value for key, value in each.items() if key not in left_out} for each in RESULTS]}


def compare(what, wanted, found):
    return list(difflib.unified_diff(wanted.splitlines(), found.splitlines(), "by hand", what, lineterm=""))


# Of the plot, which was inspected visually: a hash without the coordinates, and the sum of each
# coordinate attribute.
SKELETON = "5b6dee785aa00920"
COORDINATES = {"x": 53008.2, "y": 69525.8, "x1": 41278.4, "y1": 63228.7, "x2": 59078.4, "y2": 60340.7,
               "stroke-width": 12.0, "width": 40.6, "height": 1208.9, "d": 7117.5}


def plot_differences(text):
    """The differences in the plot, with a tolerance because machines round coordinates differently."""
    svg, sums = text[text.index("<svg"):], {}
    root = xml.etree.ElementTree.fromstring(svg)
    for element in root:
        for name, value in element.items():
            for place in re.findall(r"\d+\.\d", value):
                sums[name] = sums.get(name, 0) + float(place)
    skeleton = re.sub(r'="[^"]*"', lambda value: re.sub(r"\d+\.\d", "#", value[0]), svg)
    found = hashlib.sha256(skeleton.encode()).hexdigest()[:16]
    wrong = [f"{name}: {sums.get(name)} instead of {total}" for name, total in COORDINATES.items()
             if abs(sums.get(name, 0) - total) > 0.45]
    wrong += [f"the skeleton has the hash {found}"] if found != SKELETON else []
    return wrong + ([f"inspect this plot, and enter its hash and sums:\n{svg}"] if wrong else [])


def output_of(*arguments, **options):
    done = run(PROGRAM, *arguments, HOST, **options)
    expect((done.returncode, done.stderr), (0, ""), f"{arguments}: end")
    return done.stdout


def loads():
    """The differences in the tables and in the JSON."""
    for arguments, settings, of_json in LOADS:
        table = TABLE.format(version=VERSION, kernel=os.uname().release, settings=settings,
                             stated="" if "--both" in arguments else ", direct write stated")
        yield from compare("table", table, output_of(*arguments))
        # The number texts and the order of the keys are compared, too.
        text = re.sub(r'"date": *"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"', '"date": "DATE"',
                      output_of(*arguments, "--json"))
        yield from compare("json", json.dumps(report(arguments, of_json), indent=1),
                           json.dumps(json.loads(text, parse_float=str), indent=1))


def read_terminal(descriptor):
    """The whole output of the terminal: one read may return only part of it."""
    chunks = []
    try:
        while chunk := os.read(descriptor, 4096):
            chunks.append(chunk)
    except OSError:  # EIO: no process has the other end open
        pass
    os.close(descriptor)
    return b"".join(chunks).decode()


def on_terminal():
    """The differences if standard error is a terminal, and if a call fails."""
    for host, end in ((HOST, 5 * "\r\x1b[K"), ("nowhere", "\r\x1b[Krpma-perf: the server is unreachable\r\n")):
        own_end, other_end = pty.openpty()
        subprocess.run([PROGRAM, host], stdout=subprocess.DEVNULL, stderr=other_end, check=False)
        os.close(other_end)
        yield from compare("terminal", "\rwrite, 64 bytes: 7 operations in 1.2 s\x1b[K" + end, read_terminal(own_end))
    expect_one_line(run(PROGRAM, "--json", "nowhere"), 1, "a failure")
    with open("/dev/full", "w", encoding="ascii") as full:
        for option in ("--json", "--poll", "--interval=1", "--help", "--version"):
            expect_one_line(run(PROGRAM, option, HOST, stdout=full), 1, f"no room for the output of {option}")


def main():
    differences = [*loads(), *plot_differences(output_of("--plot", "/dev/stdout")), *on_terminal()]
    print("\n".join(differences))
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()
