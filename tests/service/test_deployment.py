"""The unit of systemd and the container file of the how-to, as far as they can be tried without either."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("thorough")

_spec = importlib.util.spec_from_file_location("processes", Path(__file__).with_name("processes.py"))
processes = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(processes)

PAGE = (Path(__file__).parents[2] / "docs" / "how_to" / "serve.md").read_text()


def block(kind):
    """The one block of its kind on the page."""
    (found,) = re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    return found


def test_systemd_takes_the_unit(tmp_path):
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not installed: apt-get install systemd")
    program = tmp_path / "surefill"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m surefill "$@"\n')
    program.chmod(0o755)
    unit = tmp_path / "surefill.service"
    unit.write_text(block("ini").replace("/opt/surefill/bin/surefill", str(program)))
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_commands_of_the_container_make_a_token_and_serve_with_it(tmp_path):
    (entry,) = re.findall(r"^ENTRYPOINT (\[.*\])$", block("dockerfile"), re.MULTILINE)
    name, *arguments = [part.replace("/home/surefill", str(tmp_path)) for part in json.loads(entry)]
    assert name == "surefill"
    environment = os.environ | {"PYTHONPATH": str(processes.SOURCE)}
    command = [sys.executable, "-m", name, *arguments]
    made = subprocess.run([*command, "token", "--scope", "admin"], capture_output=True, text=True, env=environment)
    assert made.returncode == 0, made.stderr
    folder, *options = arguments[arguments.index("--data") + 1 :]
    service = processes.Process(folder, *options)
    try:
        service.start()
        host = {"Host": options[options.index("--allow-host") + 1]}
        token = {"Authorization": f"Bearer {made.stdout.strip()}"}
        assert processes.get(f"{service.address}/v1/data-sets", headers=host).status_code == 401
        assert processes.get(f"{service.address}/v1/data-sets", headers=host | token).json() == {
            "items": [],
            "next": None,
        }
        assert service.end() == 0
    finally:
        service.close()
