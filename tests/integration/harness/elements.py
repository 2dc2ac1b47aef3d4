# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Memory lists whose elements are apart from each other, and the data expected in them."""

GUARD = 4096
SIZE = 1 << 20
AROUND = 0xa7
REGIONS = 4  # of the side with the list: memory 0, 1, …
# Lengths within a packet, of one, across several, and over pages; their order has no pattern.
LENGTHS = (1, 4096, 7, 8191, 64, 1024, 5000, 3, 1023, 16384, 2, 512)


class Elements:
    """
    Pieces of several regions, apart from each other; every third one comes behind an element of 0
    bytes if there is room for it.
    """

    def __init__(self, count, room=None):
        self.pieces = []
        self.text = []
        for number in range(count):
            region = number % REGIONS
            # The odd offset shows that nothing depends on alignment.
            place = (number // REGIONS) * 32768 + GUARD + 8 * number + (number & 1)
            self.pieces.append((region, place, LENGTHS[number % len(LENGTHS)]))
        spare = 0 if room is None else room - count
        for number, piece in enumerate(self.pieces):
            if number % 3 == 0 and spare > 0:
                self.text.append(("-:0:0", f"{piece[0]}:{piece[1]}:0")[number % 2])
                spare -= 1
            self.text.append("{}:{}:{}".format(*piece))

    @property
    def sgl(self):
        return {"sgl": ",".join(self.text) or "-:0:0"}

    @property
    def length(self):
        return sum(piece[2] for piece in self.pieces)

    def fill(self, side, seed):
        for number, (region, place, length) in enumerate(self.pieces):
            side("fill", mr=region, off=place, len=length, seed=seed + number)

    def check(self, side, seed, received=None):
        """
        The elements hold the received bytes in order, and the memory around them is untouched.
        """
        left = self.length if received is None else received
        for number, (region, place, length) in enumerate(self.pieces):
            used = min(left, length)
            left -= used
            side("check-set", mr=region, off=place - 8, len=8, byte=AROUND)
            side("check", mr=region, off=place, len=used, seed=seed + number)
            side("check-set", mr=region, off=place + used, len=length - used + 8, byte=AROUND)

    def fill_in_a_row(self, side, at, seed):
        for number, (_, _, length) in enumerate(self.pieces):
            side("fill", off=at, len=length, seed=seed + number)
            at += length

    def check_in_a_row(self, side, at, seed):
        side("check-set", off=at - GUARD, len=GUARD, byte=AROUND)
        for number, (_, _, length) in enumerate(self.pieces):
            side("check", off=at, len=length, seed=seed + number)
            at += length
        side("check-set", off=at, len=GUARD, byte=AROUND)


def blank(*sides, regions=REGIONS):
    for side in sides:
        for number in range(regions):
            side("set", mr=number, len=SIZE, byte=AROUND)
