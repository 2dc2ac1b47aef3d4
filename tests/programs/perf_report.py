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
import json
import re
import subprocess
import sys

TABLE = """\
client: librpma 1.3.0, mlx5_0, Linux 6.1
server: librpma 1.4.0, rxe1, Linux 7.3, memory devdax, direct write stated
depth 16, batch 4 prepared, elements 2, inline 64, connections 3, threads 5, waiting for events

                                      median      p99    p99.9       max                     CPU/op  server
operation           bytes operations       us       us       us        us      op/s    MiB/s      us      us
flush-persistent       64         3     0.50     3.00     3.00      3.00      2000     0.12    1.00    0.50  verified  persistent as stated
read              1048576         0     0.00     0.00     0.00      0.00         0     0.00    0.00    0.00
send                 4096   1000000   600.06  1000.00  1000.00   1000.00    400000  1562.50   12.50    0.00
"""


def latency(*figures):
    return dict(zip(("min", "mean", "median", "p90", "p99", "p99_9", "max"), figures))


def result(operation, size, operations, seconds, latency_us, rate, bandwidth, client, server, verified,
           persistence):
    return {"operation": operation, "size": size, "operations": operations, "seconds": seconds,
            "latency_us": latency_us, "operations_per_second": rate,
            "bandwidth_mib_per_second": bandwidth,
            "cpu_us_per_operation": {"client": client, "server": server}, "verified": verified,
            "persistence": persistence}


REPORT = {
    "rpma_perf": sys.argv[2], "protocol": 2, "date": "DATE", "address": "192.0.2.1", "port": "7471",
    "client": {"librpma": "1.3.0", "kernel": "6.1", "device": "mlx5_0", "memory": "dram"},
    "server": {"librpma": "1.4.0", "kernel": "7.3", "device": "rxe1", "memory": "devdax"},
    "direct_write_stated": True,
    "settings": {"depth": 16, "batch": 4, "prepared": True, "elements": 2, "inline": 64, "connections": 3,
                 "threads": 5, "poll": False, "verify": True, "warmup": 100, "duration_s": "2.500"},
    "results": [
        result("flush-persistent", 64, 3, "0.002",
               latency("0.400", "1.300", "0.500", "3.000", "3.000", "3.000", "3.000"),
               "2000.000", "0.122", "1.000", "0.500", True, "stated"),
        result("read", 1 << 20, 0, "0.000", latency(*["0.000"] * 7), "0.000", "0.000", "0.000", "0.000",
               False, "not stated"),
        result("send", 4096, 1000000, "2.500",
               latency("600.000", "800.002", "600.063", *["1000.004"] * 4),
               "400000.000", "1562.500", "12.500", "0.000", False, "not stated"),
    ],
}


def compare(what, wanted, found):
    return list(difflib.unified_diff(wanted.splitlines(), found.splitlines(), "by hand", what, lineterm=""))


def main():
    program = sys.argv[1]
    said = {kind: subprocess.run([program, kind], capture_output=True, text=True, check=True).stdout
            for kind in ("table", "json")}
    # The texts of the figures count, and the order of the keys.
    report = json.loads(re.sub(r'"date": *"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"', '"date": "DATE"', said["json"]),
                        parse_float=str)
    differences = compare("table", TABLE, said["table"]) + \
        compare("json", json.dumps(REPORT, indent=1), json.dumps(report, indent=1))
    print("\n".join(differences))
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()
