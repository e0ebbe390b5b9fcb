"""The programs of the README and the notebook run."""

from __future__ import annotations

import re
import stat
import subprocess
import sys
from pathlib import Path

import hitreg
import pytest
from conftest import Session

HERE = Path(__file__).resolve().parents[1]
PROGRAMS = re.findall(r"```python\n(.*?)```", (HERE / "README.md").read_text(), re.S)


def test_program_that_reads(session: Session) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAMS[0], "arena.hitlog", "arena.hittrace"],
        cwd=session.folder,
        capture_output=True,
        text=True,
        check=True,
    )
    first, *players = done.stdout.splitlines()
    assert re.fullmatch(r"arena on courtyard with \d+ usercmds", first)
    assert len(players) == 4
    fired, hits = (sum(int(line.split()[place]) for line in players) for place in (3, 1))
    assert [fired, hits] == counted_by(session)


def counted_by(session: Session) -> list[int]:
    """The shots and hits that hitreg counts."""
    info = session.run("info", "arena.hitlog", "--replay")
    counted = re.search(r"shots +(\d+), (\d+) hits", info)
    assert counted, info
    return [int(number) for number in counted.groups()]


def test_program_that_writes_and_replays(session: Session) -> None:
    program = session.folder / "walk.py"
    program.write_text(PROGRAMS[1].replace("/usr/bin/env python3", sys.executable))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    session.made(program, "record", "walk.hitlog")
    assert "500 ticks" in session.run("info", "walk.hitlog")
    assert "keeps the contract of builds" in session.run("check", program, "walk.hitlog")
    output = session.run("verify", "walk.hitlog", "--build", program)
    assert "500 of 500 tick hashes match the recording" in " ".join(output.split())
    changed = session.folder / "changed.py"
    changed.write_text(program.read_text().replace("0.01", "0.0100001"))
    changed.chmod(0o755)
    assert "tick 1" in session.run("verify", "walk.hitlog", "--build", changed, expect=1)


def test_notebook(session: Session) -> None:
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    for kind in ("hitlog", "hittrace"):
        (session.folder / f"session.{kind}").write_bytes((session.folder / f"arena.{kind}").read_bytes())
    notebook = nbformat.read(HERE / "examples/session.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": session.folder}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    text = "".join(output.get("text", "") for output in outputs)
    corrections = hitreg.open_trace(session.folder / "arena.hittrace")["corrections"]
    assert f"{(corrections['result'] != 'exact').sum()} corrections in {corrections.rows} acks" in text
    fired, hits = counted_by(session)
    assert f"{hits} of {fired} shots hit" in text
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 2
