"""Starts services by forking a process that has imported everything, so that a start takes moments, not seconds.

Each line of standard input is an order, each line of standard output its answer: {"start": [arguments]} gives the
number of a new process that runs ``surefill`` with these arguments, {"wait": number} its exit code. "settings" beside
the arguments take the place of the defaults of the service.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from functools import partial

import surefill.service.worker
from surefill.cli import main as command
from surefill.parallel import using_jobs
from surefill.service.service import warm_up


def main() -> None:
    with using_jobs(1):
        warm_up()
    assert threading.active_count() == 1, "a process with threads cannot be forked safely"
    for line in sys.stdin:
        order = json.loads(line)
        if "start" in order:
            number = os.fork()
            if number == 0:
                sys.stdin.close()
                surefill.service.Settings = partial(surefill.service.Settings, **order["settings"])
                command(order["start"])
                os._exit(0)
            answer = number
        else:
            answer = os.waitstatus_to_exitcode(os.waitpid(order["wait"], 0)[1])
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
