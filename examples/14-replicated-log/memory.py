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


class Memory:
    """The device that holds all logs."""

    def __init__(self, device):
        descriptor = os.open(device, os.O_RDWR)
        self.bytes = mmap.mmap(descriptor, len(SERVERS) * LOG_SIZE)
        os.close(descriptor)

    def tail(self, number):
        return struct.unpack_from("<I", self.bytes, (number - 1) * LOG_SIZE)[0]

    def set_tail(self, number, tail):
        seal = crc32c(struct.pack("<QQ", 0, tail))
        struct.pack_into("<II", self.bytes, (number - 1) * LOG_SIZE, tail, seal)

    def records(self, number):
        """Begin and end of each record."""
        begin, place = (number - 1) * LOG_SIZE, LOG_BEGIN
        while place < self.tail(number):
            size = struct.unpack_from("<I", self.bytes, begin + place + 4)[0]
            end = (place + RECORD.size + size + 7) // 8 * 8
            yield begin + place, begin + end
            place = end


def flip(memory, place, bits):
    memory.bytes[place] ^= bits


def exchange_records(memory):
    (first, middle), (_, end) = list(memory.records(3))[30:32]
    memory.bytes[first:end] = memory.bytes[middle:end] + memory.bytes[first:middle]


def drop_last_record(memory):
    for number in (1, 3):
        begin, _ = list(memory.records(number))[-1]
        memory.set_tail(number, begin % LOG_SIZE)


def remove_record(memory):
    """As if it had never been: the records behind it move up, with numbers and checksums that fit."""
    for number in (1, 2):
        (removed, _), *others = list(memory.records(number))[25:]
        place = removed
        for begin, end in others:
            record = bytearray(memory.bytes[begin:end])
            _, size, old, epoch = RECORD.unpack_from(record)
            RECORD.pack_into(record, 0, 0, size, old - 1, epoch)
            struct.pack_into("<I", record, 0, crc32c(record[4:RECORD.size + size]))
            memory.bytes[place:place + len(record)] = bytes(record)
            place += len(record)
        memory.set_tail(number, place % LOG_SIZE)


# What is spoilt -> how, and what the reader says.
SPOILT = {
    "a byte of a record": (lambda memory: flip(memory, list(memory.records(2))[20][1] - 8, 1),
                           "log 2 of .* is damaged"),
    "a tail": (lambda memory: flip(memory, LOG_SIZE, 8), "log 2 of .*: the tail .* is damaged"),
    "a header": (lambda memory: flip(memory, 2 * LOG_SIZE + 24, 1), "log 3 of .*: the header .* is damaged"),
    "the order of two records": (exchange_records, "log 3 of .* is damaged"),
    "the last record of two logs": (drop_last_record, "only 1 of 3"),
    "a record of two logs": (remove_record, "record 25 was committed, but only 1 of 3"),
    "a tail that is too far": (lambda memory: memory.set_tail(1, memory.tail(1) + 64), "log 1 of .* is damaged"),
}
