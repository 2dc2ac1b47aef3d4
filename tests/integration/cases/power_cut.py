# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""rpma-check --power-cut: clients that end, and records that were not flushed. persistence.py cuts the power."""

import os
import signal

from harness import lab
from harness.case import case
from harness.network import cables, delay_early_messages, impaired
from harness.program import TIMEOUT, expect_no_leak, flushed_records, start_power_cut, verify_records
from harness.side import expect

FOUND, MISSING = 0, 1


def begin(test, *options):
    path, ledger = lab.memory_of("DEVDAX", 1), os.path.join(test.directory(), "ledger")
    delay_early_messages(test)
    return path, ledger, *start_power_cut(test, path, ledger, *options)


@case("flush", "rpma-check --power-cut: the client gets {number.name}: every flushed record has arrived",
      [{"number": number} for number in (signal.SIGKILL, signal.SIGINT)])
def client_ends(test, number):
    path, ledger, server, client = begin(test)
    client.signal(number)
    if number == signal.SIGINT:
        expect("interrupted" in client.end(), True, "the client's result")
    expect("the client has ended" in server.end(), True, "the server's last line")
    verify_records(test, ledger, path, FOUND)
    expect_no_leak(test)


@case("lacking", "rpma-check --power-cut --no-flush: writes that completed and did not arrive are missing",
      lacks=lab.REMOTE_RESULTS, limit=120)
def never_arrived(test):
    """Without flushes the ledger lists writes that have not arrived. They must be reported."""
    path, ledger, server, client = begin(test, "--no-flush")
    test.undo.enter_context(impaired(cables(test)[:1], "loss", "100%"))
    before = flushed_records(ledger)
    client.wait_until(lambda: flushed_records(ledger) != before, "a record after the cut")
    client.signal(signal.SIGTERM)
    client.end()
    expect("first missing: stream " in verify_records(test, ledger, path, MISSING), True, "the first missing record")
    server.signal(signal.SIGKILL)
    server.process.wait(TIMEOUT)
