#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""One side of an integration test: executes the commands on its standard input with the module rpma.

A command is a verb and key=value words. The reply is "ok" or "err CODE" and such words; a command that is wrong ends the
process with the line "bad".
"""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(1, os.path.join(os.environ.get("LIBRPMA_BUILD_DIR", ""), "python"))

# pylint: disable=wrong-import-position
import rpma  # noqa: E402
import connecting  # noqa: E402,F401  # pylint: disable=unused-import
import crowd  # noqa: E402,F401  # pylint: disable=unused-import
import data  # noqa: E402,F401  # pylint: disable=unused-import
import processes  # noqa: E402,F401  # pylint: disable=unused-import
import waiting  # noqa: E402,F401  # pylint: disable=unused-import
from commands import COMMANDS, Args, Failure, reply  # noqa: E402

def shown(value):
    return value.hex() if isinstance(value, bytes) else value


def write_line(text):
    os.write(1, f"{text}\n".encode())


def execute_line(line):
    args, result = Args(line), "ok"
    reply.clear()
    os.write(2, f"---- {args.verb}\n".encode())
    try:
        COMMANDS[args.verb](args)
    except rpma.Error as error:
        result = f"err {error.name}"
        if error.name == "RPMA_E_PROVIDER":
            reply["errno"] = error.errno
    except Failure as failure:
        result = f"err {failure.name}"
    except AttributeError:  # a library of an older release lacks the function
        result = "err RPMA_E_NOSUPP"
    except OSError as error:
        result = "err ERR_SYSTEM"
        reply.update(errno=error.errno, call=(error.strerror or "").replace(" ", "_"))
    except Exception as error:  # pylint: disable=broad-exception-caught # the script is wrong
        write_line(f"bad {args.verb}: {type(error).__name__}: {error}".replace("\n", " "))
        sys.exit(2)
    write_line(" ".join([result, *(f"{key}={shown(value)}" for key, value in reply.items())]))


def main():
    # The default log function is used, because these tests also run the original's library.
    rpma.log_set_threshold(rpma.LOG_THRESHOLD, rpma.LOG_LEVEL_INFO)
    rpma.log_set_threshold(rpma.LOG_THRESHOLD_AUX, rpma.LOG_LEVEL_INFO)
    write_line(f"ready pid={os.getpid()}")
    # Without a buffer, because "serve" polls the descriptor for the next command.
    with open(0, "rb", buffering=0, closefd=False) as commands:
        while line := commands.readline().decode().strip():
            if line == "quit":
                return
            execute_line(line)
    sys.exit(3)  # the script ended without "quit"


if __name__ == "__main__":
    main()
