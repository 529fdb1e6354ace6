"""What locust sends to a service: single predictions at a rate, or batches of ratings as fast as they are stored.

    locust -f benchmarks/locustfile.py --headless --users 32 --run-time 20s --host http://localhost:8080 Reader

``SUREFILL_RATINGS`` names a file of lines "row,col,value", ``SUREFILL_RATE`` the predictions a second of all users.
"""

from __future__ import annotations

import os
import random
from itertools import count
from pathlib import Path

from locust import FastHttpUser, constant_throughput, task

LINES = Path(os.environ["SUREFILL_RATINGS"]).read_text().splitlines()
USERS = int(os.environ.get("SUREFILL_USERS", "32"))
RATE = float(os.environ.get("SUREFILL_RATE", "500"))
BATCH = 1_000
PATH = "/v1/data-sets/films"

batches = count()


class Reader(FastHttpUser):
    """Asks for one cell at a time."""

    wait_time = constant_throughput(RATE / USERS)

    @task
    def predict(self) -> None:
        row, col = random.choice(LINES).split(",")[0], random.choice(LINES).split(",")[1]
        self.client.get(f"{PATH}/predictions?row={row}&col={col}", name="read")


class Writer(FastHttpUser):
    """Sends batches one after the other."""

    @task
    def observe(self) -> None:
        first = next(batches) * BATCH % len(LINES)
        body = "row,col,value\n" + "\n".join(LINES[first : first + BATCH])
        self.client.post(f"{PATH}/observations", body, headers={"Content-Type": "text/csv"}, name="write")
