"""Flows in processes of their own, which tests can kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from trimtab.ports import FAILPOINT

ROOT = Path(__file__).parent.parent.parent


class Process:
    """The flow in a process group of its own, so that its Java machine dies with it."""

    def __init__(self, folder: Path, module: str, *arguments: str, failpoint: str = "") -> None:
        environment = {**os.environ, FAILPOINT: failpoint, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}
        # A cluster's executors look for Python by themselves.
        environment["PYSPARK_PYTHON"] = sys.executable
        command = [sys.executable, "-m", module, str(folder), *arguments]
        self._log = (folder / "log").open("w+")
        self._process = subprocess.Popen(
            command, env=environment, cwd=ROOT, stdout=self._log, stderr=subprocess.STDOUT, start_new_session=True
        )

    def wait(self, timeout: float | None = 120) -> str:
        """Its output once it has ended, or after `timeout`; whatever is left of it is killed then."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout)
        self.kill()
        self._log.seek(0)
        return self._log.read()

    @property
    def code(self) -> int | None:
        """How the process ended, before anything that was left of it was killed."""
        return self._process.returncode

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def crash_flow(folder: Path, lanes: int, failpoint: str = "", way: str = "whole", master: str = "local[2]") -> Process:
    """The flow of crash_flow.py."""
    return Process(folder, "tests.spark.crash_flow", str(lanes), way, master, failpoint=failpoint)
