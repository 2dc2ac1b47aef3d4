# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""The memory that holds the logs (log.h), and how to spoil it so that the reader notices."""

import mmap
import os
import struct

SERVERS = (1, 2, 3)  # the number of the host, of the server and of its log
LOG_SIZE = 8 << 20
LOG_BEGIN = 64
RECORD = struct.Struct("<IIQQ")  # checksum, size, number, epoch


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


class Log:
    """A server's log, the one of this number on a device."""

    def __init__(self, device, number):
        descriptor = os.open(device, os.O_RDWR)
        self.bytes = memoryview(mmap.mmap(descriptor, number * LOG_SIZE))[-LOG_SIZE:]
        os.close(descriptor)

    @property
    def tail(self):
        return struct.unpack_from("<I", self.bytes)[0]

    @tail.setter
    def tail(self, tail):
        seal = crc32c(struct.pack("<QQ", 0, tail))
        struct.pack_into("<II", self.bytes, 0, tail, seal)

    def records(self):
        """Begin and end of each record."""
        place = LOG_BEGIN
        while place < self.tail:
            size = struct.unpack_from("<I", self.bytes, place + 4)[0]
            end = (place + RECORD.size + size + 7) // 8 * 8
            yield place, end
            place = end


def flip(log, place, bits):
    log.bytes[place] ^= bits


def exchange_records(logs):
    log = logs[3]
    (first, middle), (_, end) = list(log.records())[30:32]
    log.bytes[first:end] = bytes(log.bytes[middle:end]) + bytes(log.bytes[first:middle])


def drop_last_record(logs):
    for number in (1, 3):
        logs[number].tail, _ = list(logs[number].records())[-1]


def remove_record(logs):
    """As if it had never been: the records behind it move up, with numbers and checksums that fit."""
    for log in (logs[1], logs[2]):
        (place, _), *others = list(log.records())[25:]
        for begin, end in others:
            record = bytearray(log.bytes[begin:end])
            _, size, old, epoch = RECORD.unpack_from(record)
            RECORD.pack_into(record, 0, 0, size, old - 1, epoch)
            struct.pack_into("<I", record, 0, crc32c(record[4:RECORD.size + size]))
            log.bytes[place:place + len(record)] = bytes(record)
            place += len(record)
        log.tail = place


def move_tail(logs):
    logs[1].tail += 64


# What is spoilt -> how, and what the reader says.
SPOILT = {
    "a byte of a record": (lambda logs: flip(logs[2], list(logs[2].records())[20][1] - 8, 1),
                           "log 2 of .* is damaged"),
    "a tail": (lambda logs: flip(logs[2], 0, 8), "log 2 of .*: the tail .* is damaged"),
    "a header": (lambda logs: flip(logs[3], 24, 1), "log 3 of .*: the header .* is damaged"),
    "the order of two records": (exchange_records, "log 3 of .* is damaged"),
    "the last record of two logs": (drop_last_record, "only 1 of 3"),
    "a record of two logs": (remove_record, "record 25 was committed, but only 1 of 3"),
    "a tail that is too far": (move_tail, "log 1 of .* is damaged"),
}
