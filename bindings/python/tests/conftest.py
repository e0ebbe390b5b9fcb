"""Files that hitreg writes, for comparison with what it exports."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def find_hitreg() -> Path | None:
    named = os.environ.get("HITREG") or shutil.which("hitreg")
    built = ROOT / "target/debug/hitreg"
    found = [Path(path).resolve() for path in (os.environ.get("HITREG"), built, named) if path]
    return next((path for path in found if path.is_file()), None)


class Session:
    """A folder, and hitreg in it."""

    def __init__(self, hitreg: Path, folder: Path) -> None:
        self.hitreg, self.folder = hitreg, folder

    def run(self, *line: object, expect: int = 0) -> str:
        done = subprocess.run([self.hitreg, *map(str, line)], cwd=self.folder, capture_output=True, text=True)
        assert done.returncode == expect, f"{line}: {done.returncode}: {done.stdout}{done.stderr}"
        return done.stdout

    def example(self, name: str) -> Path:
        """An example program in Rust, or a skipped test."""
        for path in (self.hitreg.parent / name, self.hitreg.parent / "examples" / name):
            if path.is_file():
                return path
        pytest.skip(f"there is no example {name} beside {self.hitreg}; cargo build --examples makes it")

    def c_example(self, name: str) -> Path:
        """A compiled example in C, or a skipped test."""
        libraries = [self.hitreg.parent / place / "libhitreg_capi.a" for place in (".", "deps")]
        library = next((path for path in libraries if path.is_file()), None)
        if not library or not shutil.which("cc"):
            pytest.skip("there is no C compiler or no libhitreg_capi.a beside hitreg")
        program = self.folder / name
        flags = [
            "-std=c11",
            "-D_POSIX_C_SOURCE=200809L",
            "-ffp-contract=off",
            "-I",
            ROOT / "crates/hitreg-capi/include",
        ]
        source = ROOT / "examples/c" / f"{name}.c"
        subprocess.run(["cc", *flags, source, "-o", program, library, "-lpthread", "-ldl", "-lm"], check=True)
        return program

    def made(self, program: Path, *line: object) -> None:
        subprocess.run([program, *map(str, line)], cwd=self.folder, check=True, capture_output=True)


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    """hitreg with a log and its trace: `arena.hitlog`, `arena.hittrace`."""
    hitreg = find_hitreg()
    if hitreg is None:
        pytest.skip("there is no hitreg: set HITREG to its binary, or run cargo build")
    session = Session(hitreg, tmp_path_factory.mktemp("files"))
    links = ["--delay-ms", 60, "--jitter-ms", 10, "--loss", "4%"]
    session.run("record", "synth", "-o", "arena.hitlog", "--players", 4, "--seconds", 8, *links)
    session.run("replay", "arena.hitlog", "-o", "arena.hittrace")
    return session
