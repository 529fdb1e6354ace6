"""Thousands of generated requests against a service with a fitted model: no 5xx, and every answer as described.

python tests/service/generated_requests.py --schemathesis .venv-serve/bin/st [--examples 200]
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import surefill as sf

_spec = importlib.util.spec_from_file_location("processes", Path(__file__).with_name("processes.py"))
processes = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(processes)

CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,"
    "response_schema_conformance,negative_data_rejection,unsupported_method"
)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--schemathesis", required=True)
    parser.add_argument("--examples", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        seen = sf.datasets.make_low_rank((60, 50), rank=2, n_draws=2000, noise=0.1, random_state=0).observations
        model = Path(folder) / "films.surefill"
        sf.PartialCompleter(tolerance=0.1, confidence="posterior").fit(seen).save(model)
        service = processes.Process(Path(folder) / "served", "--model", model)
        service.start()
        command = [options.schemathesis, "run", f"{service.address}/openapi.json", "--checks", CHECKS]
        command += ["--max-examples", str(options.examples), "--seed", str(options.seed), "--workers", "2"]
        command += ["--exclude-path-regex", "/metrics", "--request-timeout", "60"]  # on a busy machine, too
        hooks = os.environ | {"SCHEMATHESIS_HOOKS": str(Path(__file__).with_name("schemathesis_hooks.py"))}
        code = subprocess.run(command, env=hooks).returncode
        assert processes.get(f"{service.address}/health/ready").status_code == 200
        assert service.end() == 0
    return code


if __name__ == "__main__":
    sys.exit(main())
