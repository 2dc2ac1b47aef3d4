# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""The device is removed under a connection."""

from harness import lab
from harness.case import case, connected
from harness.side import expect

from .events import happens
from .faults_peer import works_with_new_client, works_with_new_server


@case("faults", "device of the {gone} removed while it waits: LOST there, CLOSED at the other "
      "side, everything can be given back", [{"gone": "server"}, {"gone": "client"}],
      needs=(lab.REMOVAL_IN_USE,), shows=("device removed",))
def device_removed(test, gone):
    lab.need_virtual("a device that can be removed")
    server, client = connected(test)
    complaints = lab.complaints()
    lost, other = (server, client) if gone == "server" else (client, server)
    waits, answer = {"server": ("next-req", "RPMA_E_INVAL"),
                     "client": ("cq-wait", "RPMA_E_PROVIDER")}[gone]
    lost.begin(waits, timeout=0)
    host = lab.host(1 if gone == "server" else 2)
    test.undo.callback(lab.add_device, lost.device, host)
    lab.run("rdma", "link", "delete", lost.device)
    expect(lost.take()[0], answer, f"{gone}: end of {waits}")
    lost.event("LOST")
    other.event("CLOSED")
    happens(lost, "DEVICE_GONE")
    lost("nonblock", fd="device")
    lost.refuses("RPMA_E_NO_EVENT", "device-event", polled=0)
    lost.refuses("RPMA_E_PROVIDER", "send", mr=0, len=8)
    lost.refuses("RPMA_E_NO_COMPLETION", "poll-wc")
    lost.refuses("RPMA_E_PROVIDER", "cq-wait")
    lost.refuses("RPMA_E_PROVIDER", "disconnect")
    for verb in ("conn-delete", "ep-shutdown", "dereg", "peer-delete"):
        lost(verb)
    lost.refuses("RPMA_E_PROVIDER", "context", addr=lost.address)
    lost.begin("quit")
    lost.wait_for_end()
    test.undo.close()
    other("disconnect")
    expect(lab.complaints(), complaints, "what the kernel complains about")
    if gone == "server":
        works_with_new_server(test, client)
    else:
        works_with_new_client(test, server)
