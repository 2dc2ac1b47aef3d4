# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""The memory that holds the logs (log.h), and how to spoil it so that the reader notices."""

import mmap
import os
import struct

SERVERS = (1, 2, 3)  # the number of the host, of the server and of its log
LOG_SIZE = 8 << 20
LOG_BEGIN = 64


class Memory:
    """The device that holds all logs."""

    def __init__(self, device):
        descriptor = os.open(device, os.O_RDWR)
        self.bytes = mmap.mmap(descriptor, len(SERVERS) * LOG_SIZE)
        os.close(descriptor)

    def tail(self, number):
        return struct.unpack_from("<Q", self.bytes, (number - 1) * LOG_SIZE)[0]

    def records(self, number):
        """Begin and end of each record."""
        begin, place = (number - 1) * LOG_SIZE, LOG_BEGIN
        while place < self.tail(number):
            size = struct.unpack_from("<I", self.bytes, begin + place + 4)[0]
            end = (place + 24 + size + 7) // 8 * 8
            yield begin + place, begin + end
            place = end


def spoil_byte(memory, said):
    begin, end = list(memory.records(2))[20]
    memory.bytes[end - 8] ^= 1
    return said


def exchange_records(memory, said):
    (first, middle), (_, end) = list(memory.records(3))[30:32]
    memory.bytes[first:end] = memory.bytes[middle:end] + memory.bytes[first:middle]
    return said


def drop_record(memory, said):
    for number in (1, 3):
        begin, _ = list(memory.records(number))[-1]
        struct.pack_into("<Q", memory.bytes, (number - 1) * LOG_SIZE, begin % LOG_SIZE)
    return said


def publish_too_much(memory, said):
    struct.pack_into("<Q", memory.bytes, 0, memory.tail(1) + 64)
    return said


def report_other_record(_, said):
    number, crc = said[-1].split()[1:]
    return [*said, f"committed {number} {int(crc, 16) ^ 1:08x}"]


SPOILT = {spoil_byte: "log 2 of .* is damaged", exchange_records: "log 3 of .* is damaged",
          drop_record: "only 1 of 3", publish_too_much: "log 1 of .* is damaged",
          report_other_record: "only 0 of 3"}
