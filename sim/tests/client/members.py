#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rdma-sim developers
"""
Checks that the fabric uses, refuses or knowingly ignores each member and flag that a program
passes to libibverbs and librdmacm.

usage: members.py CC

members.tsv has one row for each: its name and the file of sim/ that reads it, or "ignored" or
"refused" and why. A member of the headers without a row fails the test.
"""

import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
STRUCTURES = """ibv_ah_attr ibv_cq_init_attr_ex ibv_global_route ibv_poll_cq_attr ibv_qp_attr ibv_qp_cap
    ibv_qp_init_attr ibv_qp_init_attr_ex ibv_recv_wr ibv_send_wr ibv_sge ibv_srq_attr ibv_srq_init_attr ibv_values_ex
    rdma_addrinfo rdma_conn_param""".split()
FLAGS = """ibv_access_flags ibv_create_cq_attr_flags ibv_create_cq_wc_flags ibv_cq_init_attr_mask ibv_qp_attr_mask
    ibv_qp_create_send_ops_flags ibv_qp_init_attr_mask ibv_qp_type ibv_rereg_mr_flags ibv_send_flags ibv_srq_attr_mask
    ibv_wr_opcode""".split()


def preprocessed(compiler):
    headers = "#include <infiniband/verbs.h>\n#include <rdma/rdma_cma.h>\n"
    done = subprocess.run([*compiler, "-E", "-P", "-xc", "-"], input=headers, text=True, stdout=subprocess.PIPE,
                          check=True)
    return re.sub(r"__attribute__\s*\(\(.*?\)\)", "", done.stdout, flags=re.S)


def body_of(text, kind, name):
    found = re.search(rf"\b{kind} {name} \{{", text)
    if not found:
        sys.exit(f"{name}: not in the headers")
    depth, at = 1, found.end()
    while depth > 0:
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at += 1
    return text[found.end():at - 1]


def names(text):
    for name in STRUCTURES:
        body = body_of(text, "struct", name)
        for declared in re.findall(r"(\w+)(?:\[\w*\])?\s*;", body):
            yield f"{name}.{declared}"
    for name in FLAGS:
        for constant in re.findall(r"\b(IBV\w+|RDMA\w+)\s*(?:=|,|$)", body_of(text, "enum", name), re.M):
            yield constant


def main():
    rows = {}
    for line in (HERE / "members.tsv").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            name, place = line.split("\t")
            rows[name] = place
    found = sorted(set(names(preprocessed(sys.argv[1:]))))
    assert len(found) > 150, found
    failures = [f"{name}: no row in members.tsv" for name in found if name not in rows]
    for name, place in rows.items():
        if re.match("ignored: .|refused: .", place):
            continue
        word = name.rsplit(".", maxsplit=1)[-1]
        if not re.search(rf"\b({word}|{word.replace('IBV_', 'SIM_')})\b", (HERE.parents[1] / place).read_text(encoding="utf-8")):
            failures.append(f"{name}: {place} does not have {word}")
    if failures:
        sys.exit("\n".join(failures))


if __name__ == "__main__":
    main()
