"""A small part of ``make test-processors`` on every run: what once hung on the kernels of one processor."""

import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent

SENSITIVE = (
    "spaces/test_norms.py::test_max_norm_of_known_matrices",
    "spaces/test_lbfgs.py",
    "completion/test_contract.py::TestMaxNormCompletion::test_values_follow_their_units",
    "completion/test_max_norm.py::test_fits_to_values_that_differ_by_rounding_are_as_near_as_their_gaps_say",
)


def test_other_kernels_and_perturbed_draws_pass_too():
    for only in ("OpenBLAS Nehalem", "perturbed 1"):
        command = [sys.executable, TESTS / "processors.py", "--only", only, "--jobs", "0"]
        done = subprocess.run(
            [*command, *(str(TESTS / name) for name in SENSITIVE)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
