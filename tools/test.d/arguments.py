# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""The command line of the tools that are written in Python."""

import argparse
import pathlib
import re
import sys


class Parser(argparse.ArgumentParser):
    """Reports wrong arguments in one line, and also a help text that cannot be written, which argparse ignores."""

    def __init__(self, tool, description):
        super().__init__(prog=tool, description=description, formatter_class=argparse.RawDescriptionHelpFormatter)

    def error(self, message):
        self.exit(2, f'{pathlib.PurePath(self.prog).name}: {message} (see {self.prog} --help)\n')

    def print_help(self, file=None):
        try:
            print(self.format_help(), end='', file=file, flush=True)
        except OSError as error:
            sys.stdout = None  # Python would flush it again at its end
            self.exit(1, f'{pathlib.PurePath(self.prog).name}: cannot write to standard output: {error.strerror}\n')


def whole_number(least, most=10 ** 6):
    """The type of an argument that is a whole number in this range."""
    def number(text):
        if not re.fullmatch(r'\d{1,18}', text) or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f'{text!r} is not a whole number from {least} to {most}')
        return int(text)
    return number
