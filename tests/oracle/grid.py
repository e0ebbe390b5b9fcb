#!/usr/bin/env python3
"""Runs every command of hitreg over a grid of sound recordings and checks that the answers agree.

    tests/oracle/grid.py --hitreg target/debug/hitreg --work /tmp/grid
    tests/oracle/grid.py --hitreg target/debug/hitreg --work /tmp/grid --sample 60 --seed 1

Each case is a recording and a check. A check runs one or more commands, expects exit code 0 or 1 of each, and
compares their answers. Results are appended to WORK/results.jsonl. The exit code is 1 when a check fails.
"""

from __future__ import annotations

import argparse
import collections
import json
import random
import re
import shutil
import sys
import time
from pathlib import Path
from typing import Any, Callable

import oracle
import sessions
from runner import Run, Runner
from sessions import Recording

GIB_LIMIT = 2.0
# A refusal for memory names the needed amount.
MEMORY = re.compile(r"(\d+(?:[.,]\d+)?) ?(GiB|MiB)")


class Failed(Exception):
    """A check that found a fault."""


class Skipped(Exception):
    """A check that does not apply to a recording; the message says why."""


class Session:
    """A recorded log with the commands that ran on it. Commands run once; later checks read the stored answer."""

    def __init__(self, recording: Recording, folder: Path, hitreg: Path, runner: Runner) -> None:
        self.recording = recording
        self.folder = folder
        self.runner = runner
        self.program = sessions.program_of(recording, hitreg) or hitreg
        self.runs: dict[str, Run] = {}
        self.wanted: list[str] = []

    def run(self, line: str, codes: tuple[int, ...] = (0, 1), stdin: str | None = None) -> Run:
        """Runs `hitreg LINE`. Raises `Failed` when the exit code is none of `codes`. SELF is the program's own path."""
        key = f"{line} <{stdin}" if stdin else line
        if key not in self.runs:
            words = [str(self.program) if word == "SELF" else word for word in line.split()]
            source = self.folder / stdin if stdin else None
            self.runs[key] = self.runner.run([self.program, *words], self.folder, source)
        run = self.runs[key]
        self.wanted.append(key)
        if run.code not in codes:
            if is_announced_refusal(run):
                raise Skipped(f"refused for memory: {run.last_words}")
            raise Failed(f"exit {run.code}: hitreg {key}: {run.last_words}")
        return run

    def json(self, line: str, codes: tuple[int, ...] = (0, 1)) -> Any:
        """Runs a command with `--format json` and returns its answer."""
        answer = self.run(f"{line} --format json", codes).json()
        if answer is None:
            raise Failed(f"no JSON: hitreg {line} --format json")
        return answer

    def fresh(self, line: str, codes: tuple[int, ...]) -> Run:
        """Runs a command without the stored answer, for commands whose answer depends on files that change."""
        self.runs.pop(line, None)
        run = self.run(line, codes)
        self.runs[f"{line} #{len(self.runs)}"] = self.runs.pop(line)
        return run

    def expect(self, line: str, code: int) -> Run:
        """Runs a command that must end with this exit code."""
        run = self.run(line, (0, 1, 125))
        if run.code != code:
            raise Failed(f"exit {run.code}, not {code}: hitreg {line}: {run.last_words}")
        return run

    @property
    def replay(self) -> dict[str, Any]:
        """The answer of `replay`, which also writes the trace a.hittrace."""
        return self.json("replay a.hitlog -o a.hittrace --force")

    def trace(self) -> str:
        """Writes the trace if it does not exist."""
        self.replay
        return "a.hittrace"

    def table(self, name: str, source: str = "a.hitlog") -> list[dict[str, str]]:
        """The rows of an exported table."""
        path = self.folder / f"{name}-{source}.csv"
        self.run(f"export {source} --table {name} --to csv -o {path.name} --force", (0,))
        return oracle.read_rows(path)

    def tables(self) -> dict[str, int]:
        """Names and row counts of the tables of a replay."""
        return {table["table"]: table["rows"] for table in self.json("export a.hitlog")}

    def require_server(self) -> None:
        """Skips the check where the log has no server to replay."""
        if self.recording.is_open or self.recording.kind in ("client-side", "c-recorder"):
            raise Skipped("the log has no server that this build replays")

    def require_replay(self) -> None:
        """Skips the check where another program plays the game."""
        if self.recording.kind == "c-recorder":
            raise Skipped("the game is the C example's")


def is_announced_refusal(run: Run) -> bool:
    """Whether hitreg refused with a message because the command needs more than 2 GiB of memory."""
    found = MEMORY.search(run.last_words)
    if run.code != 128 or found is None:
        return False
    number = float(found[1].replace(",", ""))
    return "memory" in run.last_words and number / (1 if found[2] == "GiB" else 1024) > GIB_LIMIT


def same(what: str, *values: Any) -> None:
    """Fails unless all values are equal."""
    if any(value != values[0] for value in values[1:]):
        raise Failed(f"{what}: {' / '.join(json.dumps(value)[:160] for value in values)}")


# --- Single commands -------------------------------------------------------------------------------------------------


def info(s: Session) -> None:
    """`info` answers, as text and as JSON."""
    s.run("info a.hitlog", (0,))
    s.json("info a.hitlog", (0,))


def settings(s: Session) -> None:
    """`settings` lists the preset's values."""
    s.json(f"settings --preset {s.recording.preset}", (0,))


def replay_closed(s: Session) -> None:
    """A closed replay agrees with the recorded state of every tick."""
    s.require_replay()
    first = s.replay["hashes"]["first_difference_tick"]
    if first is not None:
        raise Failed(f"replay differs from the recording at tick {first}")


def replay_open(s: Session) -> None:
    """An open replay answers."""
    s.require_replay()
    s.json("replay a.hitlog --mode open -o open.hittrace --force")


def replay_sizes(s: Session) -> None:
    """Datagrams made for their sizes change no other figure."""
    s.require_server()
    sized = s.json("replay a.hitlog --sizes")
    for part in ("prediction", "shots", "exercised"):
        same(f"{part} with and without --sizes", s.replay[part], sized[part])
    for way in ("up", "down"):
        for key in ("sent", "lost", "took_ms"):
            same(f"network.{way}.{key} with and without --sizes", s.replay["network"][way][key], sized["network"][way][key])


def replay_set(s: Session) -> None:
    """A setting or a preset changes the replay and nothing breaks."""
    s.require_server()
    s.json("replay a.hitlog --set interpolation.lerp_ms=37")
    s.json("replay a.hitlog --preset quake3")


def replay_rejudge(s: Session) -> None:
    """Each shot judged under another rule; 125 only where the session has no shot."""
    s.require_server()
    run = s.run("replay a.hitlog --set lag_compensation.enabled=false --what-if rejudge --format json", (0, 1, 125))
    if run.code == 125 and s.replay["shots"]["fired"] > 0:
        raise Failed(f"exit 125 with {s.replay['shots']['fired']} shots: rejudge: {run.last_words}")
    if run.code != 125:
        # Rejudging changes outcomes, never how many shots there are.
        same("shots fired, replay and rejudge", s.replay["shots"]["fired"], run.json()["shots"]["fired"])


def replay_same_set(s: Session) -> None:
    """`--set` with the log's own value changes nothing."""
    s.require_server()
    own = s.json("info a.hitlog", (0,))["preset"]
    if own in sessions.PRESETS and not s.recording.settings:
        same("digest under the log's own preset", s.replay["digest"], s.json(f"replay a.hitlog --preset {own}")["digest"])
    else:
        raise Skipped("the log's settings are not a preset's")


def replay_parts(s: Session) -> None:
    """The parts of a replay before and after a time sum to the whole, for rows that belong to one time."""
    s.require_replay()
    if s.recording.kind == "client-side":
        raise Skipped("the log's times are of the client's clock")
    whole = s.replay
    half = whole["session_us"] // 2000
    if half < 100:
        raise Skipped("the session is too short")
    first = s.json(f"replay a.hitlog --to {half}ms")
    second = s.json(f"replay a.hitlog --from {half}ms")
    for key in ("ticks", "usercmds", "corrections", "hits"):
        parts = [first["exercised"][key], second["exercised"][key]]
        if None in (*parts, whole["exercised"][key]):
            continue  # Not known, as the corrections of a log of one side.
        same(f"{key} of both parts ({parts[0]} + {parts[1]}) and of the whole", sum(parts), whole["exercised"][key])


def replay_record(s: Session) -> None:
    """A replay recorded as a new log replays to the same trace."""
    s.require_server()
    s.json("replay a.hitlog --record again.hitlog --force")
    same("digest of the log and of `replay --record`", s.replay["digest"], s.json("replay again.hitlog")["digest"])


def why(s: Session) -> None:
    """`why` explains the first shots and the first correction, and agrees with the table of shots."""
    s.require_replay()
    rows = [row for row in s.table("shots") if row["impact"] == "0"] if "shots" in s.tables() else []
    # Hits of a target other than the nearest come first.
    hits = sorted((row for row in rows if row["reason"] == "hit"), key=lambda row: row["aimed_at"] == row["target"])
    for row in rows[:1] + hits[:3]:
        name = f"p{row['shooter']}#{row['command']}" + (f".{row['index']}" if row["index"] != "0" else "")
        answer = s.json(f"why a.hitlog {name}", (0,))
        server = answer["shot"]["server"]
        same(f"why {name}: reason, page and table", server["reason"], row["reason"])
        same(f"why {name}: target, page and table", server["target"] or "none", row["target"])
        judged = re.search(r"the server judged (p\d+)", answer["answer"])
        if row["reason"] == "hit" and judged and row["target"] != "?":
            same(f"why {name}: the sentence is about who was hit", judged[1], row["target"])
        if row["reason"] == "hit" and row["target"] not in ("none", "?"):
            same(f"why {name}: the target of a hit is who was hit", answer["shot"]["about"], row["target"])
        shown = answer["shot"]["view_error_units"]
        same(f"why {name}: view error, page and table", None if shown is None else round(shown, 3), oracle.number(row["view_error_units"], 3))
    if s.replay["exercised"]["corrections"]:
        corrected = next(row for row in s.table("corrections") if row["cause"] != "none")
        s.json(f"why a.hitlog --player p{corrected['player']} --correction 1", (0,))
    elif not rows:
        raise Skipped("no shot and no correction")


def report_log(s: Session) -> None:
    """The page of a log holds the replay's rows, shots, hits, corrections and lost packets."""
    s.require_replay()
    s.json("report a.hitlog -o a.html --force")
    page = oracle.Page.read(s.folder / "a.html")
    side = page.contents["sides"][0]
    shown = dict(side["tables"])
    # A page takes the packets from the log, so the replay may lack the table.
    same("rows of tables, report and export", shown, {name: rows for name, rows in s.tables().items() if name in shown})
    same("rows of shots, page and export", len(side["shots"]), s.tables().get("shots", 0))
    hits = (s.replay["exercised"]["hits"] or 0) + s.replay["shots"]["reported"]
    same("hits, page and replay", sum(shot["server"]["reason"] == "hit" for shot in side["shots"]), hits)
    same("corrections, page and replay", len(side["corrections"]), s.replay["exercised"]["corrections"])
    told = s.json("info a.hitlog", (0,))
    for way, key in (("up", "packets_up"), ("down", "packets")):
        counted = page.packets(way)
        if (told.get(key) or {}).get("lost") is not None and counted["shown"]:
            same(f"packets {way} that were lost, page and info", counted["lost"], told[key]["lost"])


def report_trace(s: Session) -> None:
    """The page of a trace holds the same as the page of its log."""
    s.require_replay()
    s.json(f"report {s.trace()} -o t.html --force")
    s.json("report a.hitlog -o a.html --force")
    pages = [oracle.Page.read(s.folder / name) for name in ("a.html", "t.html")]
    sides = [page.contents["sides"][0] for page in pages]
    for part in ("shots", "corrections", "acks"):
        same(f"{part}, report of log and of trace", *(len(side[part]) for side in sides))
    # The trace of an open replay has no packets.
    if s.tables().get("packets"):
        for way in ("up", "down"):
            same(f"packets {way}, report of log and of trace", *(page.packets(way) for page in pages))
    tables = [dict(side["tables"]) for side in sides]
    same("tables, report of log and of trace", tables[0], {name: tables[1].get(name) for name in tables[0]})


def report_sides(s: Session) -> None:
    """The page of two sides and of a part."""
    s.require_server()
    s.json("report a.hitlog --b-set interpolation.lerp_ms=37 -o two.html --force")
    s.json("report a.hitlog --from 1 --to 2 -o part.html --force")


def sweep(s: Session) -> None:
    """The row of the log's own value has the figures of `replay`."""
    s.require_server()
    rows = s.json("sweep a.hitlog --set lag_compensation.max_unlag_ms=100,500")
    preset_value = {"half-life": "500", "nereids": None, "quake3": None}.get(s.recording.preset)
    own = [row for row in rows if row["lag_compensation.max_unlag_ms"] == preset_value]
    for row in own:
        same("shots, sweep and replay", row["shots"], s.replay["shots"]["fired"])
        same("hits, sweep and replay", row["hits"], s.replay["shots"]["hit"])
        same("corrections, sweep and replay", row["corrections"], s.replay["exercised"]["corrections"])


def sweep_rejudge(s: Session) -> None:
    """Rejudged rows all have the recorded number of shots."""
    s.require_server()
    run = s.run("sweep a.hitlog --set lag_compensation.enabled=true,false --what-if rejudge --format json", (0, 1, 125))
    fired = s.replay["shots"]["fired"]
    if run.code == 125:
        if fired:
            raise Failed(f"exit 125 with {fired} shots: sweep rejudge: {run.last_words}")
        raise Skipped("no shot")
    same("shots of each row and of the replay", [row["shots"] for row in run.json()], [fired] * 2)


def shrink(s: Session) -> None:
    """A shrunk log still shows the difference."""
    s.require_server()
    if s.recording.cost > 300 or s.recording.kind == "side":
        raise Skipped("too large to shrink in the grid")
    if s.run("diff a.hitlog --b-set server.update_hz=7 --summary", (0, 1)).code == 0:
        raise Skipped("the sides are the same")
    s.run("shrink a.hitlog -o small.hitlog --b-set server.update_hz=7 --force", (0,))
    s.expect("diff small.hitlog --b-set server.update_hz=7 --summary", 1)


def keyframes(s: Session) -> None:
    """Keyframes change no row of a replay. A part that begins at one equals the part of a full replay."""
    s.require_server()
    if s.recording.kind == "side":
        raise Skipped("a keyframe holds clients, which the server's log alone does not have")
    run = s.run("keyframes a.hitlog -o k.hitlog --every 1 --force", (0, 128))
    if run.code == 128:
        if "cannot be streamed" in run.last_words and s.recording.link == "narrow":
            raise Skipped("a snapshot queued for more than 30 s, and hitreg says that the log cannot be streamed")
        raise Failed(f"exit 128: hitreg keyframes: {run.last_words}")
    same("digest with and without keyframes", s.replay["digest"], s.json("replay k.hitlog")["digest"])
    with_, without = (s.json(f"replay {log} --from 2 --to 3") for log in ("k.hitlog", "a.hitlog"))
    for part in ("prediction", "shots", "exercised", "network"):
        same(f"{part} of a part with and without keyframes", with_.get(part), without.get(part))
    s.run("verify k.hitlog", (0,))
    s.run("verify k.hitlog --whole", (0,))


def recover(s: Session) -> None:
    """`recover` of a truncated copy gives a log that verifies."""
    log = s.folder / "a.hitlog"
    cut = s.folder / "cut.hitlog"
    cut.write_bytes(log.read_bytes()[: log.stat().st_size * 7 // 10])
    run = s.run("recover cut.hitlog -o saved.hitlog --force", (0, 1, 125, 128))
    if run.code == 128:
        # A log of one chunk has no complete chunk before the cut.
        if s.recording.seconds > 5 and "noth" not in run.last_words:
            raise Failed(f"exit 128: hitreg recover: {run.last_words}")
        raise Skipped(f"nothing to recover: {run.last_words}")
    whole, saved = (s.json(f"info {name}", (0,)) for name in ("a.hitlog", "saved.hitlog"))
    if saved["usercmds"] > whole["usercmds"]:
        raise Failed(f"recovered {saved['usercmds']} usercmds of {whole['usercmds']}")
    if not s.recording.is_open and s.recording.kind not in ("c-recorder", "client-side"):
        verified = s.run("verify saved.hitlog", (0, 125))
        if verified.code == 125 and saved["usercmds"] > 0 and saved["ticks"] > 0:
            raise Failed(f"exit 125: hitreg verify saved.hitlog: {verified.last_words}")


def perfetto(s: Session) -> None:
    """The timeline for Perfetto is JSON."""
    s.require_replay()
    s.run("export a.hitlog --perfetto -o p.json --force", (0,))
    json.loads((s.folder / "p.json").read_text())


def git_like(s: Session) -> None:
    """`bisect builds` of one build finds no difference."""
    s.require_replay()
    s.expect("bisect builds a.hitlog SELF SELF --no-cache", 0)


# --- Relations between commands --------------------------------------------------------------------------------------


def routes(s: Session) -> None:
    """Every route gives one digest: in process, as a build, whole, with threads, from a pipe."""
    s.require_server()
    digest = s.replay["digest"]
    lines = ["", "--build SELF", "--whole", "--threads 1", "--threads 2"]
    for line in lines:
        verified = s.json(f"verify a.hitlog {line}".strip())
        same(f"verdict of verify {line}", verified["verdict"], "same")
        # A log with keyframes is verified in parts, which have no common digest.
        if verified["logs"][0]["digest"] is not None:
            same(f"digest, replay and verify {line}", digest, verified["logs"][0]["digest"])
        elif "--whole" in line or "--build" in line:
            raise Failed(f"no digest: verify {line}")
        same(f"exercised, replay and verify {line}", s.replay["exercised"], verified["logs"][0]["exercised"])
    piped = s.run("replay - --format json", stdin="a.hitlog").json()
    same("digest, file and pipe", digest, piped["digest"])


def rollback(s: Session) -> None:
    """Restored and rerun ticks give the same result."""
    s.require_server()
    run = s.run("verify a.hitlog --rollback 8", (0, 125))
    if run.code == 125:
        # Two rollbacks of 8 ticks need 16 of them.
        if s.replay["exercised"]["ticks"] <= 16:
            raise Skipped("the log has too few ticks for a rollback")
        raise Failed(f"exit 125: verify --rollback 8: {run.last_words}")


def golden(s: Session) -> None:
    """A golden accepted by one route holds for each other route."""
    s.require_server()
    accepts = ["verify g.hitlog --accept", "verify g.hitlog --build SELF --accept"]
    checks = ["verify g.hitlog", "verify g.hitlog --build SELF", "verify g.hitlog --whole", "verify g.hitlog --threads 1"]
    shutil.copy(s.folder / "a.hitlog", s.folder / "g.hitlog")
    wrong = []
    for accept in accepts:
        (s.folder / "g.hitlog.golden").unlink(missing_ok=True)
        (s.folder / "g.golden").unlink(missing_ok=True)
        s.fresh(accept, (0,))
        for check in checks:
            run = s.fresh(check, (0, 1, 125))
            if run.code != 0:
                wrong.append(f"after `{accept}`, `{check}` exits {run.code}: {run.last_words}")
    if wrong:
        raise Failed(" | ".join(wrong))


def review(s: Session) -> None:
    """A proposed golden is accepted by `review`."""
    s.require_server()
    shutil.copy(s.folder / "a.hitlog", s.folder / "r.hitlog")
    s.fresh("verify r.hitlog --propose", (0, 1))
    s.fresh("review r.hitlog", (0, 1))
    s.fresh("review r.hitlog --accept", (0,))


def diff_self(s: Session) -> None:
    """A log, its trace, and a replay of this program as a build are the same."""
    s.require_replay()
    s.expect("diff a.hitlog --b SELF --no-cache --summary", 0)
    s.expect(f"diff {s.trace()} a.hitlog --summary", 0)
    s.expect(f"diff {s.trace()} {s.trace()} --summary", 0)
    s.require_server()
    # `diff` compares a log with its replay only if the log has all sides.
    if s.recording.kind != "side":
        s.expect("diff a.hitlog --summary", 0)


def diff_set(s: Session) -> None:
    """`diff` and `bisect ticks` agree whether a setting changes something, and side A has the replay's hits."""
    s.require_server()
    found = s.run("diff a.hitlog --b-set server.update_hz=7 --format json", (0, 1))
    same("exit code, diff and bisect ticks", found.code, s.run("bisect ticks a.hitlog --b-set server.update_hz=7", (0, 1)).code)
    counts = re.search(r"hits: A ([\d,]+)", found.json()["summary"])
    if counts:
        same("hits of side A, diff and replay", int(counts[1].replace(",", "")), s.replay["shots"]["hit"])


def diff_routes(s: Session) -> None:
    """Two traces differ exactly as the log does under the two settings."""
    s.require_server()
    s.trace()
    s.run("replay a.hitlog --set server.update_hz=7 -o b.hittrace --force")
    by_log = s.json("diff a.hitlog --b-set server.update_hz=7")
    by_trace = s.json("diff a.hittrace b.hittrace")
    for key in ("verdict", "first"):
        same(f"{key}, diff of log and of traces", by_log[key] and strip_state(by_log[key]), by_trace[key] and strip_state(by_trace[key]))
    s.run("bisect ticks a.hittrace b.hittrace", (by_trace["verdict"] != "same",))


def strip_state(first: Any) -> Any:
    """The first difference without the fields that need a log."""
    return {key: first.get(key) for key in ("table", "place", "field", "a", "b")} if isinstance(first, dict) else first


def diff_hits(s: Session) -> None:
    """`--on hits`, `--b-preset` and `--why` answer; 125 means no shots, or equal hits under a setting that no replay shows."""
    s.require_server()
    run = s.run("diff a.hitlog --b-preset quakeworld --on hits --format json", (0, 1, 125))
    is_unanswered = run.code == 125 and "a replay cannot change" in (run.json().get("untestable") or "")
    if run.code == 125 and s.replay["shots"]["fired"] and not is_unanswered:
        raise Failed(f"exit 125 with {s.replay['shots']['fired']} shots: diff --on hits: {run.last_words}")
    if run.code == 1 and run.json().get("hits"):
        s.run("diff a.hitlog --b-preset quakeworld --on hits --why 1", (1,))


def diff_open_hits(s: Session) -> None:
    """An open replay of a log with a server judges no shot, so its hits cannot be compared."""
    s.require_server()
    s.expect("diff a.hitlog --b SELF --open --on hits --no-cache", 125)


def diff_rejudge(s: Session) -> None:
    """`diff --what-if rejudge` answers, and side A has the hits of the replay."""
    s.require_server()
    run = s.run("diff a.hitlog --b-set lag_compensation.enabled=false --what-if rejudge --format json", (0, 1, 125))
    if run.code == 125 and s.replay["shots"]["fired"]:
        raise Failed(f"exit 125 with {s.replay['shots']['fired']} shots: diff rejudge: {run.last_words}")


def counts(s: Session) -> None:
    """`info --replay` and `replay` count the same shots, hits, usercmds, losses and choked updates."""
    s.require_replay()
    told = s.json("info a.hitlog --replay", (0,))
    # `info` does not replay the log of a client.
    for key, part in (("shots", "fired"), ("hits", "hit")):
        if told.get(key) is not None or s.recording.kind == "synth":
            same(f"{key}, info and replay", told.get(key), s.replay["shots"][part])
    same("usercmds, info and replay", told["usercmds"], s.replay["exercised"]["usercmds"])
    wrong = []
    network = s.replay.get("network")
    if network:
        for way, key in (("down", "packets"), ("up", "packets_up")):
            if key in told and told[key] is not None:
                for part in ("sent", "lost"):
                    pair = (told[key].get(part), network[way][part])
                    if None not in pair and pair[0] != pair[1]:
                        wrong.append(f"{key}.{part}: info {pair[0]}, replay {pair[1]}")
        if told.get("packets", {}).get("choked") not in (None, network["choked"]):
            wrong.append(f"choked: info {told['packets']['choked']}, replay {network['choked']}")
    if wrong:
        raise Failed("; ".join(wrong))


def sums(s: Session) -> None:
    """Causes sum to misses, players sum to all, pairs sum to all hits."""
    s.require_replay()
    answer = s.replay
    prediction = answer.get("prediction") or {}
    causes = sum((prediction.get("misses_by_cause") or {}).values())
    # Corrections are the misses and smaller differences.
    if (answer["exercised"]["corrections"] or 0) < causes:
        raise Failed(f"{causes} misses by cause, {answer['exercised']['corrections']} corrections")
    for part in ("exact", "near", "checked"):
        both = prediction["ground"][part] + prediction["air"][part]
        same(f"prediction.{part}, ground + air", both, prediction[part])
    same("checked = exact + near + misses by cause", prediction["checked"], prediction["exact"] + prediction["near"] + causes)
    fairness = answer.get("fairness")
    if fairness:
        for key in ("hits", "known", "in_cover"):
            same(f"fairness.{key} of pairs and all", sum(pair[key] for pair in fairness["pairs"]), fairness["all"][key])
    told = s.json("info a.hitlog", (0,))
    same("usercmds by player and in all", sum(p["usercmds"] for p in told["by_player"]), told["usercmds"])
    for key in ("packets", "packets_up"):
        for part in ("sent", "received", "lost", "choked"):
            if told.get(key) and told[key].get(part) is not None:
                parts = [(p.get(key) or {}).get(part) or 0 for p in told["by_player"]]
                same(f"{key}.{part} by player and in all", sum(parts), told[key][part])


def tables(s: Session) -> None:
    """Every table has as many rows in CSV and JSONL as the list says, from the log and from its trace."""
    s.require_replay()
    listed = s.tables()
    s.trace()
    for folder, to, source in (("csv", "csv", "a.hitlog"), ("jsonl", "jsonl", "a.hitlog"), ("csv-t", "csv", "a.hittrace")):
        s.run(f"export {source} --all --to {to} -o {folder} --force", (0,))
    for name, rows in listed.items():
        csv, jsonl, by_trace = (s.folder / d / f"{name}.{e}" for d, e in (("csv", "csv"), ("jsonl", "jsonl"), ("csv-t", "csv")))
        same(f"rows of {name}: list, csv, jsonl", rows, count_lines(csv) - 1, count_lines(jsonl))
        same(f"bytes of {name} from log and trace", csv.read_bytes() == by_trace.read_bytes(), True)


def count_lines(path: Path) -> int:
    """The number of lines in a file."""
    with path.open("rb") as file:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))


def oracle_check(s: Session) -> None:
    """The oracle recounts the replay's figures from the exported tables."""
    s.require_replay()
    answer = s.replay
    s.run("export a.hitlog --all --to csv -o csv --force", (0,))
    wrong = oracle.check(s.folder / "csv", answer, s.json("info a.hitlog", (0,)))
    if wrong:
        raise Failed(" | ".join(wrong[:8]))


def foreign_builds(s: Session) -> None:
    """A log of another game equals its replay by its own build, and `info` describes it."""
    if s.recording.kind != "pucks":
        raise Skipped("not a foreign game")
    s.expect("diff a.hitlog --a SELF --b SELF --no-cache --summary", 0)
    other = sessions.tools().get("pucks_delay")
    if other:
        s.run(f"diff a.hitlog --b {other} --no-cache", (0, 1))


def merge_parts(s: Session) -> None:
    """A merged log verifies."""
    if s.recording.kind != "sides":
        raise Skipped("not merged")
    s.run("verify a.hitlog", (0,))


CHECKS: dict[str, Callable[[Session], None]] = {
    check.__name__: check
    for check in (
        info, replay_closed, counts, sums, tables, oracle_check, routes, golden, diff_self, diff_set, diff_routes,
        diff_hits, diff_open_hits, diff_rejudge, why, report_log, report_trace, report_sides, sweep, sweep_rejudge, shrink,
        keyframes, recover, perfetto, git_like, rollback, review, replay_open, replay_sizes, replay_set, replay_rejudge,
        replay_same_set, replay_parts, replay_record, foreign_builds, merge_parts, settings,
    )
}  # fmt: skip
# Checks that run on each recording. The others rotate, so that a recording has about a third of them.
ALWAYS = ["replay_closed", "counts", "sums", "oracle_check"]
LARGE_COMMANDS = [
    "info", "replay_closed", "counts", "sums", "routes", "diff_self", "diff_set", "report_log", "report_trace", "sweep",
    "sweep_rejudge", "git_like", "why", "diff_rejudge",
]  # fmt: skip


def cases_of(recording: Recording, index: int) -> list[str]:
    """The checks that run on a recording."""
    if recording.is_large:
        return LARGE_COMMANDS
    if recording.kind != "synth":
        return list(CHECKS)
    others = [name for name in CHECKS if name not in (*ALWAYS, "foreign_builds", "merge_parts")]
    if recording.cost > 3000:
        return ALWAYS + others[index % 6 :: 6]
    return ALWAYS + others[index % 4 :: 4]


def plan(sample: int | None, seed: int, only: str | None, names: list[str], every: bool = False) -> list[tuple[Recording, str]]:
    """The cases in order. A sample has only small recordings, chosen by the seed."""
    cases = [(r, check) for index, r in enumerate(sessions.recordings()) for check in (CHECKS if every else cases_of(r, index))]
    if only:
        cases = [(r, check) for r, check in cases if check in only.split(",")]
    if names:
        cases = [(r, check) for r, check in cases if r.name in names]
    if sample is not None:
        small = [case for case in cases if case[0].is_small]
        chosen = set(random.Random(seed).sample(range(len(small)), min(sample, len(small))))
        cases = [case for index, case in enumerate(small) if index in chosen]
    return cases


def judge(session: Session, check: str) -> tuple[str, str]:
    """Runs one check. Returns `ok`, `failed` or `skipped`, and the reason."""
    try:
        CHECKS[check](session)
    except Failed as fault:
        return "failed", str(fault)
    except Skipped as reason:
        return "skipped", str(reason)
    except (KeyError, TypeError, IndexError, ValueError, OSError, StopIteration) as error:
        return "failed", f"unexpected answer: {type(error).__name__}: {error}"
    return "ok", ""


def run_grid(args: argparse.Namespace) -> int:
    """Runs the plan. Returns the number of failed cases."""
    args.work.mkdir(parents=True, exist_ok=True)
    runner = Runner(args.time_limit)
    cases = plan(args.sample, args.seed, args.only, args.recording, args.every)
    tally: collections.Counter[tuple[str, str]] = collections.Counter()
    runs, session, made = 0, None, ""
    results = (args.work / "results.jsonl").open("a" if args.start else "w")
    for number, (recording, check) in enumerate(cases):
        if number < args.start:
            continue
        began = time.monotonic()
        if session is None or session.recording.name != recording.name:
            if session is not None and not args.keep:
                shutil.rmtree(session.folder, ignore_errors=True)
            folder = args.work / recording.name
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            session = Session(recording, folder, args.hitreg, runner)
            made = sessions.make(recording, runner, folder, args.hitreg)[1]
        before = len(session.runs)
        session.wanted = []
        verdict, said = ("skipped" if made.startswith("skipped") else "failed", made) if made else judge(session, check)
        runs += len(session.runs) - before
        tally[check, verdict] += 1
        line = {"case": number, "recording": recording.name, "check": check, "verdict": verdict, "said": said}
        line |= {"commands": session.wanted, "seconds": round(time.monotonic() - began, 2)}
        line |= {"peak_mib": round(max((run.peak_mib for run in session.runs.values()), default=0))}
        results.write(json.dumps(line) + "\n")
        results.flush()
        if verdict == "failed" or args.verbose:
            print(f"{number:4} {verdict:8} {recording.name:20} {check:16} {said}", flush=True)
    if session is not None and not args.keep:
        shutil.rmtree(session.folder, ignore_errors=True)
    summarise(tally, runs, args.work)
    return sum(count for (_, verdict), count in tally.items() if verdict == "failed")


def summarise(tally: collections.Counter[tuple[str, str]], runs: int, work: Path) -> None:
    """Prints the table of checks and verdicts."""
    print(f"\n{'check':18}{'ok':>6}{'failed':>8}{'skipped':>9}")
    for check in CHECKS:
        counted = [tally[check, verdict] for verdict in ("ok", "failed", "skipped")]
        if any(counted):
            print(f"{check:18}{counted[0]:6}{counted[1]:8}{counted[2]:9}")
    total = [sum(n for (_, v), n in tally.items() if v == verdict) for verdict in ("ok", "failed", "skipped")]
    print(f"{'all':18}{total[0]:6}{total[1]:8}{total[2]:9}\n{runs} commands; results: {work / 'results.jsonl'}")


def main() -> int:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hitreg", type=Path, required=True, help="the program to check")
    parser.add_argument("--work", type=Path, required=True, help="a folder for logs and results")
    parser.add_argument("--sample", type=int, help="run this many cases of small recordings")
    parser.add_argument("--seed", type=int, default=1, help="which sample")
    parser.add_argument("--from", dest="start", type=int, default=0, help="skip the cases before this one (resume)")
    parser.add_argument("--only", help="these checks alone, by commas")
    parser.add_argument("--every", action="store_true", help="run every check on every chosen recording")
    parser.add_argument("--recording", action="append", default=[], help="this recording alone; may be repeated")
    parser.add_argument("--time-limit", type=float, default=900.0, help="seconds for one command")
    parser.add_argument("--keep", action="store_true", help="keep the recordings' folders")
    parser.add_argument("--list", action="store_true", help="list the cases and stop")
    parser.add_argument("-v", "--verbose", action="store_true", help="print every case")
    args = parser.parse_args()
    args.hitreg, args.work = args.hitreg.resolve(), args.work.resolve()
    if args.list:
        for number, (recording, check) in enumerate(plan(args.sample, args.seed, args.only, args.recording, args.every)):
            print(number, recording.name, check)
        return 0
    return 1 if run_grid(args) else 0


if __name__ == "__main__":
    sys.exit(main())
