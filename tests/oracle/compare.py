#!/usr/bin/env python3
"""Compares the answers of two programs over the grid's recordings: a test for changes of the file format.

    tests/oracle/compare.py OLD/hitreg NEW/hitreg --work /tmp/compare

Each program records and imports the same sessions in its own format, then runs every command with `--format json`.
Answers are compared by value, exported tables by the bytes of their CSV. Fields that may change between two correct
builds are masked by name (`VOLATILE`). The exit code is 1 when a session differs.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import sys
from pathlib import Path
from typing import Any, Iterator

import sessions
from runner import Runner

# Speed, sizes and digests of files: they depend on the machine and on the format, not on the session.
VOLATILE = {
    "real_time_factor", "size_bytes", "bytes_per_usercmd", "bytes", "format_version", "log_digest", "digest", "written_by",
    "trace", "output", "records",
}  # fmt: skip
COMMANDS = [
    "info a.hitlog", "info a.hitlog --replay", "replay a.hitlog -o a.hittrace --force", "replay a.hitlog --mode open",
    "replay a.hitlog --sizes", "replay a.hitlog --from 1 --to 2", "replay a.hitlog --preset quake3",
    "replay a.hitlog --set lag_compensation.enabled=false --what-if rejudge", "verify a.hitlog", "verify a.hitlog --whole",
    "verify a.hitlog --rollback 8", "diff a.hitlog", "diff a.hitlog --b-set server.update_hz=7",
    "diff a.hitlog --b-preset quakeworld --on hits", "bisect ticks a.hitlog --b-set server.update_hz=7",
    "sweep a.hitlog --set interpolation.lerp_ms=50,100", "export a.hitlog", "why a.hitlog --at 1",
    "report a.hitlog -o a.html --force", "export a.hitlog --all --to csv -o csv --force",
]  # fmt: skip


def masked(value: Any) -> Any:
    """The answer without volatile fields."""
    if isinstance(value, dict):
        return {key: masked(part) for key, part in value.items() if key not in VOLATILE}
    if isinstance(value, list):
        return [masked(part) for part in value]
    return value


def differences(a: Any, b: Any, at: str = "") -> Iterator[str]:
    """Where two answers differ, by path."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted({*a, *b}):
            if key not in a or key not in b:
                yield f"{at}.{key}: only in {'A' if key in a else 'B'}"
            else:
                yield from differences(a[key], b[key], f"{at}.{key}")
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for index, (x, y) in enumerate(zip(a, b)):
            yield from differences(x, y, f"{at}[{index}]")
    elif a != b:
        yield f"{at}: A {str(a)[:80]}, B {str(b)[:80]}"


def tables_of(folder: Path) -> dict[str, str]:
    """Digests of the exported tables, by name."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in sorted(folder.glob("*.csv"))}


def answers(recording: sessions.Recording, program: Path, folder: Path, runner: Runner) -> dict[str, Any] | str:
    """Every command's exit code and answer, and the tables. A text says why there is no recording."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    log, why = sessions.make(recording, runner, folder, program)
    if log is None:
        return why
    owner = sessions.program_of(recording, program) or program
    found: dict[str, Any] = {}
    for line in COMMANDS:
        run = runner.run([owner, *line.split(), "--format", "json"], folder)
        found[line] = {"exit": run.code, "answer": masked(run.json())}
    found["tables"] = tables_of(folder / "csv")
    return found


def compare(recording: sessions.Recording, programs: list[Path], work: Path, runner: Runner) -> list[str]:
    """The differences of one recording."""
    a, b = (answers(recording, program, work / side, runner) for side, program in zip("AB", programs))
    if isinstance(a, str) or isinstance(b, str):
        both_skipped = isinstance(a, str) and isinstance(b, str) and a.startswith("skipped") and b.startswith("skipped")
        return [a] if both_skipped else [f"A: {a if isinstance(a, str) else 'recorded'}; B: {b if isinstance(b, str) else 'recorded'}"]
    return list(differences(a, b))


def main() -> int:
    """Parses the command line and compares session by session."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=Path, nargs=2, metavar="PROGRAM", help="program A, then program B")
    parser.add_argument("--work", type=Path, required=True, help="a folder for the recordings")
    parser.add_argument("--sessions", type=int, default=60, help="how many recordings, the cheapest first")
    args = parser.parse_args()
    programs = [path.resolve() for path in args.programs]
    # Recordings of the example programs are made by one build of them, so that they say nothing about a format.
    own = [r for r in sessions.recordings() if not r.is_large and r.kind in ("synth", "qwd", "quake3-udp")]
    chosen = sorted(sorted(own, key=lambda r: r.cost)[: args.sessions], key=lambda r: r.name)
    differing = 0
    for recording in chosen:
        found = compare(recording, programs, args.work.resolve(), Runner())
        skipped = len(found) == 1 and found[0].startswith("skipped")
        differing += bool(found) and not skipped
        print(f"{'skipped' if skipped else 'differs' if found else 'same':8} {recording.name}", flush=True)
        for line in found[:20]:
            print(f"         {line}")
        if len(found) > 20:
            print(f"         and {len(found) - 20} more")
    print(f"{len(chosen)} sessions, {differing} differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
