#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""
perf_report.py PROGRAM VERSION: compares what rpma-perf says of the results in perf_report.cc with what
follows from them by hand.

Three latencies of 400, 500 and 3,000 ns: the median is 500, 99 % of three are three. 600,000 ns are
counted in the bucket that ends with 524,288 + 37 * 2,048 - 1. 3 operations in 1.5 ms are 2,000 a
second; of 64 bytes, 0.122 MiB.
"""

import difflib
import hashlib
import json
import re
import subprocess
import sys
import xml.etree.ElementTree

TABLE = """\
client: librpma 1.3.0, mlx5_0, Linux 6.1
server: librpma 1.4.0, rxe1, Linux 7.3, memory devdax, direct write stated
depth 16, batch 4 prepared, elements 2, inline 64, connections 3, threads 5, waiting for events, \
region 1048576 at random, reads 30 %, both directions, rate 1000

                                      median      p99    p99.9       max                             CPU/op  server
operation           bytes operations       us       us       us        us      op/s    MiB/s  Gbit/s      us      us
flush-persistent       64         3     0.50     3.00     3.00      3.00      2000     0.12   0.001    1.00    0.50  verified  persistent as stated
read              1048576         1     0.00     0.00     0.00      0.00        14    14.00   0.117    1.00    0.00
send                 4096   1000000   600.06  1000.00  1000.00   1000.00    400000  1562.50  13.107   12.50    0.00  gaps 2, longest 0.400 s, in all 0.500 s
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


REPORT = {
    "rpma_perf": sys.argv[2], "protocol": 3, "date": "DATE", "address": "192.0.2.1", "port": "7471",
    "client": {"librpma": "1.3.0", "kernel": "6.1", "device": "mlx5_0", "memory": "dram"},
    "server": {"librpma": "1.4.0", "kernel": "7.3", "device": "rxe1", "memory": "devdax"},
    "direct_write_stated": True,
    "settings": {"depth": 16, "batch": 4, "prepared": True, "elements": 2, "inline": 64, "connections": 3,
                 "threads": 5, "poll": False, "verify": True, "region": 1048576, "random": True, "reads": 30,
                 "both": True, "rate": 1000, "reconnect": True, "warmup": 100, "duration_s": "2.500"},
    "results": [
        result("flush-persistent", 64, 3, "0.002",
               latency("0.400", "1.300", "0.500", "3.000", "3.000", "3.000", "3.000"),
               "2000.000", "0.122", "0.001", "1.000", "0.500", True, "stated"),
        result("read", 1 << 20, 1, "0.500", latency(*["0.000"] * 7), "14.000", "14.000", "0.117", "1.000", "0.000",
               False, "not stated", [], "12.000"),
        result("send", 4096, 1000000, "2.500",
               latency("600.000", "800.002", "600.063", *["1000.004"] * 4),
               "400000.000", "1562.500", "13.107", "12.500", "0.000", False, "not stated",
               [interval("1.000", 400000, "400000.000", "600.000", "900.000"),
                interval("2.000", 0, "0.000", "0.000", "0.000"),
                interval("2.500", 1, "2.000", "5.000", "5.000")],
               gaps=[("1.000", "0.400"), ("2.250", "0.100")], without="0.500"),
    ],
}


def compare(what, wanted, found):
    return list(difflib.unified_diff(wanted.splitlines(), found.splitlines(), "by hand", what, lineterm=""))


# Of the picture, which was looked at: all of it but the places, and for each attribute the sum of those.
SKELETON = "13fd9e2b7a797004"
PLACES = {"x": 36775.6, "y": 35524.6, "x1": 28175.5, "y1": 32436.1, "x2": 40115.5, "y2": 30256.1, "stroke-width": 9.0, "width": 29.0, "height": 863.5, "d": 4459.5}


def picture(text):
    """What differs in the picture; a place may be rounded in another way on another machine."""
    svg, sums = text[text.index("<svg"):], {}
    root = xml.etree.ElementTree.fromstring(svg)
    for element in root:
        for name, value in element.items():
            for place in re.findall(r"\d+\.\d", value):
                sums[name] = sums.get(name, 0) + float(place)
    skeleton = re.sub(r'="[^"]*"', lambda value: re.sub(r"\d+\.\d", "#", value[0]), svg)
    found = hashlib.sha256(skeleton.encode()).hexdigest()[:16]
    wrong = [f"{name}: {sums.get(name)} instead of {total}" for name, total in PLACES.items()
             if abs(sums.get(name, 0) - total) > 0.45]
    wrong += [f"the skeleton has the sum {found}"] if found != SKELETON else []
    return wrong + ([f"look at this, and enter its sums:\n{svg}"] if wrong else [])


def main():
    program = sys.argv[1]
    said = {kind: subprocess.run([program, kind], capture_output=True, text=True, check=True).stdout
            for kind in ("table", "json", "plot")}
    # The texts of the figures count, and the order of the keys.
    report = json.loads(re.sub(r'"date": *"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"', '"date": "DATE"', said["json"]),
                        parse_float=str)
    differences = compare("table", TABLE, said["table"]) + \
        compare("json", json.dumps(REPORT, indent=1), json.dumps(report, indent=1))
    differences += picture(said["plot"])
    print("\n".join(differences))
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()
