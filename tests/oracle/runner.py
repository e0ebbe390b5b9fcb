"""Runs programs and keeps their exit code, output, time and peak memory."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass
class Run:
    """One finished run of a program."""

    argv: list[str]
    code: int
    stdout: bytes
    stderr: str
    seconds: float
    peak_mib: float

    @property
    def last_words(self) -> str:
        """The last lines of stderr, or of stdout if stderr is empty."""
        said = self.stderr.strip() or self.stdout[-2000:].decode(errors="replace").strip()
        return " / ".join(said.splitlines()[-4:])[-700:]

    def json(self) -> Any:
        """Its stdout as JSON; `None` if it is not JSON."""
        try:
            return json.loads(self.stdout)
        except ValueError:
            return None


@dataclass
class Runner:
    """Runs programs one at a time, each in its recording's folder, with a time limit."""

    time_limit_s: float = 900.0

    def run(self, argv: list[Any], folder: Path, stdin: Path | None = None) -> Run:
        """Runs a program to its end. A program over the time limit is killed; its exit code is then 124."""
        words = [str(word) for word in argv]
        env = {**os.environ, "NO_COLOR": "1", "XDG_CACHE_HOME": str(folder / "cache")}
        began = time.monotonic()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            source = stdin.open("rb") if stdin else subprocess.DEVNULL
            process = subprocess.Popen(words, cwd=folder, stdin=source, stdout=out, stderr=err, env=env)
            killed = threading.Event()
            timer = threading.Timer(self.time_limit_s, lambda: (killed.set(), process.kill()))
            timer.start()
            # `wait4` gives the peak memory of this child process.
            _, status, usage = os.wait4(process.pid, 0)
            timer.cancel()
            process.returncode = os.waitstatus_to_exitcode(status)
            if stdin:
                source.close()
            out.seek(0)
            err.seek(0)
            code = 124 if killed.is_set() else process.returncode
            code = 128 - code if code < 0 else code
            stdout, stderr = out.read(), err.read().decode(errors="replace")
        return Run(words, code, stdout, stderr, time.monotonic() - began, usage.ru_maxrss / 1024)
