"""hitreg reads what the package writes."""

from __future__ import annotations

import json
import re
import stat
import sys
from pathlib import Path

import hitreg
import numpy as np
import pytest
from conftest import ROOT, Session
from hitreg._description import FRAMES_COLUMNS, TRACE_TABLES
from hitreg._schema import KINDS
from test_compare import check_log, check_trace, exported, tables_of

FIELDS = [
    hitreg.Field("origin.x", "f32", "movement", "position"),
    hitreg.Field("fuel", "f64"),
    hitreg.Field("health", "i32"),
    hitreg.Field("ammo", "u32"),
    hitreg.Field("money", "i64"),
    hitreg.Field("id", "u64"),
    hitreg.Field("alive", "bool"),
    hitreg.Field("mood", "text"),
]
TICKS = np.arange(1, 301)
TAKEN_KINDS = ("frames", "shots", "views", "bodies.c", "usercmd_bytes", "states", "states.1", "keyframe")


def values_of(kind: str, ticks: np.ndarray) -> np.ndarray:
    """Extreme and ordinary values of a type."""
    wave = np.sin(ticks / 7)
    if kind == "text":
        return np.array(["", "calm", "ängstlich"], object)[ticks % 3]
    if kind == "bool":
        return ticks % 3 == 0
    if kind[0] == "f":
        values = (wave * 1000).astype(kind.replace("f32", "f4").replace("f64", "f8"))
        values[:3] = -0.0, 1e-30, -1e30
        return values
    info = np.iinfo({"i32": "i4", "u32": "u4", "i64": "i8", "u64": "u8"}[kind])
    values = (ticks * 3).astype(info.dtype)
    values[:2] = info.min, info.max
    return values


def write_session(path: Path, gap: bool) -> None:
    kinds = {"casts": [hitreg.Field(f"of_{kind}", kind) for kind in ("f32", "f64", "i64", "u64", "bool", "text")]}
    lean = hitreg.Field("lean", "f32", "movement", "angle")
    settings = {"server.tick_hz": 100, "sv_gravity": 800}
    with hitreg.LogWriter(
        path,
        game="mygame",
        players=["a", "b"],
        settings=settings,
        classes={"player": FIELDS, "rocket": FIELDS[:1]},
        usercmd_fields=[lean],
        kinds=kinds,
        map="dm1",
        seed=7,
    ) as log:
        at = TICKS * 10_000
        log.write("ticks", {"tick": TICKS, "at_us": at, "hash": TICKS.astype(np.uint64) ** 7})
        for player in (1, 0):
            log.write("presence", {"player": player, "tick": 1, "at_us": 10_000, "change": "joined"})
            move = {"forwardmove": values_of("f32", TICKS), "buttons": TICKS % 2, "msec": 10, "lean": 0.25}
            log.write("frames", {"player": player, "seq": TICKS, "at_us": at - 5_000, **move})
            log.write("sent", {"player": player, "number": TICKS, "newest": TICKS, "at_us": at - 4_000, "count": 1})
            log.write("reached", {"player": player, "number": TICKS, "at_us": at - 1_000})
            how = np.where(TICKS % 9 == 0, "missing", "run")
            log.write("executed", {"player": player, "command": TICKS, "tick": TICKS, "how": how})
            log.write("snapshots", {"player": player, "seq": TICKS, "tick": TICKS, "at_us": at + 1_000, "ack": TICKS})
            log.write("received", {"player": player, "number": TICKS, "at_us": at + 30_000})
            state = {field.name: values_of(field.kind, TICKS) for field in FIELDS}
            log.write_states("player", {"tick": TICKS, "entity": player, **state})
        log.flush()
        shots = TICKS[TICKS % 50 == 0]
        # Later rows, in a second call.
        later = {"tick": [301, 302], "at_us": [3_010_000, 3_020_000]}
        log.write("ticks", later)
        log.write_states("rocket", {"tick": [301, 302], "entity": 9, "origin.x": [1.5, 2.5]})
        log.write("casts", {"series": 3, "at_us": 3_010_000, "of_text": "fire", "of_i64": -5, "of_f64": 1e300})
        aim = {"reason": "hit", "target": 1, "damage": 20, "rewound_us": 50_000, "weapon": "rifle", "pellets": [0, -1] * 3}
        log.write("judged", {"player": 0, "command": shots, "at_us": 3_011_000, **aim})
        log.write("damage", {"tick": 301, "at_us": 3_010_000, "victim": 1, "attacker": [0, -1], "amount": 20})
        push = {"weapon": "rifle", "armour": 0, "force_x": 1.5, "forced": [1, 0]}
        log.write("damage", {"tick": 302, "at_us": 3_020_000, "victim": 1, "attacker": [0, -1], "amount": 20, **push})
        if gap:
            log.write("gaps", {"from_us": 3_012_000, "at_us": 3_013_000, "player": -1, "why": "paused"})


@pytest.fixture(scope="module")
def written(session: Session) -> Path:
    write_session(session.folder / "written.hitlog", gap=True)
    return session.folder / "written.hitlog"


def test_hitreg_exports_what_was_written(session: Session, written: Path) -> None:
    info = session.run("info", written)
    for text in ("mygame", "players       2", "302 ticks", "usercmds      600", "sv_gravity=800", "dm1"):
        assert text in info, info
    tables = tables_of(session, written)
    assert (tables["bodies"], tables["bodies.rocket"]) == (600, 2)
    check_log(session, written)
    bodies = exported(session, written, "bodies")
    for field in FIELDS:
        found = [bodies[field.name][row] for row in range(0, 600, 2)]
        if field.kind == "text":
            assert found == values_of("text", TICKS).tolist()
    assert exported(session, written, "casts")["of_text"] == ["fire"]
    log = hitreg.open_log(written)
    assert log.sealed and not log.damage and log.header.classes[0].fields == FIELDS
    for field in FIELDS:
        states = log.states("player")
        mine = states.take(states["entity"] == 0)[field.name]
        assert mine.tolist() == values_of(field.kind, TICKS).tolist(), field
    assert log["received"]["at_us"][:2].tolist() == [40_000, 50_000]
    assert log["snapshots"]["entities"].tolist() == [2] * 600
    damage = log["damage"]
    assert damage["attacker"].tolist() == [0, -1, 0, -1]
    assert damage["armour"].tolist() == [-1, -1, 0, 0] and damage["forced"].tolist() == [False, False, True, False]
    assert exported(session, written, "damage")["weapon"] == ["", "", "rifle", "rifle"]
    assert log["judged"]["pellets"].tolist() == [0, -1] * 3
    assert not log["judged"]["impact"].any()
    assert log["ticks"]["hashed"].tolist() == [True] * 300 + [False] * 2


def test_a_hash_of_0_is_none(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "zero.hitlog"
    with hitreg.LogWriter(path, game="mygame", players=["p0"]) as log:
        log.write("ticks", {"tick": [1, 2, 3], "at_us": [10, 20, 30], "hash": np.array([0, 7, 0], np.uint64)})
    ticks = hitreg.open_log(path)["ticks"]
    assert (ticks["hashed"].tolist(), ticks["hash"].tolist()) == ([False, True, False], [0, 7, 0])
    assert [line.split(",")[-1] for line in session.run("export", path, "--table", "ticks", "--to", "csv").split()] == [
        "hash",
        "",
        "0000000000000007",
        "",
    ]


def test_hitreg_checks_the_seal_of_a_written_log(session: Session, written: Path, tmp_path: Path) -> None:
    data = bytearray(written.read_bytes())
    assert "undamaged" in session.run("recover", written, "-o", tmp_path / "whole.hitlog")
    # A bit of the digest in the seal.
    data[data.rfind(b"hitseal\0") + 9] ^= 1
    (tmp_path / "flipped.hitlog").write_bytes(data)
    session.run("info", tmp_path / "flipped.hitlog", expect=128)
    (tmp_path / "cut.hitlog").write_bytes(written.read_bytes()[:-3000])
    session.run("recover", tmp_path / "cut.hitlog", "-o", tmp_path / "fixed.hitlog")
    assert 0 < hitreg.open_log(tmp_path / "fixed.hitlog")["frames"].rows <= 600


def test_a_copied_log_replays_as_the_original(session: Session, tmp_path: Path) -> None:
    """A game in Rust replays the input, links and settings that the package read and wrote again."""
    pucks, path, copy = session.example("pucks"), tmp_path / "a.hitlog", tmp_path / "copy.hitlog"
    session.made(pucks, "record", "synth", "-o", path, "--seconds", 4, "--delay-ms", 50, "--loss", "3%")
    log = hitreg.open_log(path)
    header, classes = log.header, {of.name: of.fields for of in log.header.classes}
    players = [player.name for player in header.players]
    about = {"map": header.map, "seed": header.seed, "rules": header.rules, "settings": header.settings}
    with hitreg.LogWriter(copy, game=header.game, players=players, classes=classes, **about) as out:
        for name in ("ticks", "frames", "sent", "reached", "executed", "presence", "received"):
            out.write(name, dict(log[name]))
        lists = ("entities", "effects", "warnings", "helper_ms", "extra")
        out.write("snapshots", {key: values for key, values in log["snapshots"].items() if key not in lists})
        for name in classes:
            out.write_states(name, dict(log.states(name)))
    for one in (path, copy):
        session.made(pucks, "replay", one, "-o", one.with_suffix(".hittrace"))
    original, again = (hitreg.open_trace(one.with_suffix(".hittrace")) for one in (path, copy))
    assert original.tables == again.tables
    for name in original.tables:
        for column, values in original[name].items():
            np.testing.assert_array_equal(values, again[name][column], f"{name}.{column}")
    session.made(pucks, "verify", copy)


def test_trace_of_all_types(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "a.hittrace"
    with hitreg.TraceWriter(path, game="mygame", settings={"sv_gravity": 800}) as trace:
        trace.write("ticks", {"tick": [1, 2], "at_us": [10_000, 20_000], "hash": np.array([1, 2**63], np.uint64)})
        kinds = ("f32", "f64", "i64", "u64", "u32", "bool", "text")
        wide = np.arange(1, 100_001)
        columns = {f"of_{kind}": values_of(kind, wide) for kind in kinds}
        trace.write("mine", {"tick": wide, **columns}, key=["tick"], units={"tick": "ticks"})
        trace.write("many", {"name": [f"name {n}" for n in range(300)], "at_us": [-1] * 300})
    check_trace(session, path)
    table = hitreg.open_trace(path)["mine"]
    assert table.key == ["tick"] and table.units == {"tick": "ticks"}
    for kind in kinds:
        assert table[f"of_{kind}"].tolist() == values_of(kind, wide).tolist()


def test_narrow_arrays_are_widened(session: Session, tmp_path: Path) -> None:
    path, kinds = tmp_path / "a.hittrace", {"u1": np.uint32, "u2": np.uint32, "f2": np.float32}
    with hitreg.TraceWriter(path, game="mygame") as trace:
        trace.write("mine", {name: np.array([1, 7], name) for name in kinds})
    check_trace(session, path)
    table = hitreg.open_trace(path)["mine"]
    assert all(table[name].tolist() == [1, 7] and table[name].dtype == kind for name, kind in kinds.items())


def test_signed_arrays_are_written_with_64_bits(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "a.hittrace"
    with hitreg.TraceWriter(path, game="mygame") as trace:
        values = {f"of_{width}": np.array([-2, 7], f"i{width}") for width in (1, 2, 4, 8)}
        trace.write("mine", {"tick": [1, 2], **values})
    check_trace(session, path)
    table = hitreg.open_trace(path)["mine"]
    assert all(table[name].tolist() == [-2, 7] and table[name].dtype == np.int64 for name in values)


NANS = np.array([np.nan, 0.5])


@pytest.mark.parametrize(
    "first, later, kind",
    [
        ([1, 2], [2**32 - 1], np.uint32),
        ([-1], [1, 2**63 - 1], np.int64),
        (np.array([1, 2]), [5], np.int64),
        ([1, 2], np.array([5], np.uint64), np.uint32),
        ([2**63], [0], np.uint64),
        (np.float32([1]), [2.5, 16_777_216.0], np.float32),
        ([0.5], np.float32([0.1]), np.float64),
        ([0.5], [2**53, -(2**63)], np.float64),
        (np.float32([1]), NANS, np.float32),
        ([True], [1, 0], np.bool_),
        ([], [1], np.uint32),
        ([], ["a"], np.object_),
        (["a", "b"], ["c", "a", "d"], np.object_),
        (["a"], [f"name {n}" for n in range(300)], np.object_),
    ],
)
def test_later_rows_have_the_types_of_the_first(
    session: Session, tmp_path: Path, first: list, later: list, kind: type
) -> None:
    path = tmp_path / "a.hittrace"
    with hitreg.TraceWriter(path, game="mygame") as trace:
        trace.write("mine", {"tick": list(range(len(first))), "v": first}, key=["tick"], units={"v": "units"})
        trace.write("mine", {"tick": [], "v": []})
        trace.write("mine", {"v": later, "tick": [1000 + n for n in range(len(later))]})
    check_trace(session, path)
    table = hitreg.open_trace(path)["mine"]
    assert table["v"].dtype == kind and table["tick"].dtype == np.uint32
    assert table.key == ["tick"] and table.units == {"v": "units"}
    np.testing.assert_array_equal(table["v"].tolist(), [*first, *later])


@pytest.mark.parametrize(
    "first, later, what",
    [
        ([1, 2], [-1], "column v: -1 is no u32, the type of its first rows"),
        ([1], [2**63], "9223372036854775808 is no u32"),
        ([-1], [2**63], "9223372036854775808 is no i64"),
        ([2**63], [-1], "-1 is no u64"),
        ([True], [2], "2 is no bool"),
        ([1], [2.5], "2.5 is no u32"),
        (np.float32([1]), [0.1], "0.1 is no f32"),
        (np.float32([1]), [2**24 + 1], "16777217 is no f32"),
        ([0.5], [2**53 + 1], "9007199254740993 is no f64"),
        ([0.5], [2**63 - 1], "9223372036854775807 is no f64"),
        ([0.5], [2**64 - 1], "18446744073709551615 is no f64"),
        ([1], ["a"], "column v: its first rows hold numbers, and these texts"),
        (["a"], [1], "column v: its first rows hold texts, and these numbers"),
    ],
)
def test_later_rows_of_other_types_are_refused(tmp_path: Path, first: list, later: list, what: str) -> None:
    with hitreg.TraceWriter(tmp_path / "a.hittrace", game="mygame") as trace:
        trace.write("mine", {"v": first})
        with pytest.raises(hitreg.HitregError, match=what):
            trace.write("mine", {"v": later})
    assert hitreg.open_trace(tmp_path / "a.hittrace")["mine"]["v"].tolist() == list(first)


def test_a_table_without_rows_is_written(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "a.hittrace"
    with hitreg.TraceWriter(path, game="mygame") as trace:
        trace.write("mine", {"tick": [], "v": np.zeros(0, np.float32)}, key=["tick"])
        trace.write("ticks", {"tick": [1]})
    check_trace(session, path)
    table = hitreg.open_trace(path)["mine"]
    assert table.rows == 0 and table["v"].dtype == np.float32 and table.key == ["tick"]


@pytest.mark.parametrize(
    "columns, more, what",
    [
        ({"tick": [2]}, {}, "its first rows have other columns: v"),
        ({"tick": [2], "v": [1], "w": [1]}, {}, "its first rows have other columns: w"),
        ({"tick": [2], "v": [1]}, {"key": ["v"]}, "its key and units are not those"),
        ({"tick": [2], "v": [1]}, {"units": {"v": "ms"}}, "its key and units are not those"),
    ],
)
def test_later_rows_with_another_schema_are_refused(tmp_path: Path, columns: dict, more: dict, what: str) -> None:
    with hitreg.TraceWriter(tmp_path / "a.hittrace", game="mygame") as trace:
        trace.write("mine", {"tick": [1], "v": [1]}, key=["tick"])
        with pytest.raises(hitreg.HitregError, match=f"table mine: {what}"):
            trace.write("mine", columns, **more)


# A shell starts Python, because the first line of a script takes no path with spaces.
BUILD = """#!/bin/sh
'''exec' "{python}" "$0" "$@"
'''
import sys
import hitreg

log = hitreg.open_log(sys.argv[2])
ticks, states = log["ticks"], log.states("player")
output = sys.argv[sys.argv.index("-o") + 1]
with hitreg.TraceWriter(output, game=log.header.game, settings=log.header.settings) as trace:
    hashes = ticks["hash"]{change}
    known = ticks["hashed"]
    trace.write("ticks", {{"tick": ticks["tick"][known], "at_us": ticks["at_us"][known], "hash": hashes[known]}})
    trace.write("executed", {{name: log["executed"][name] for name in ("player", "command", "tick", "how")}})
"""


@pytest.mark.parametrize("change, code", [("", 0), (" + (ticks['tick'] > 100)", 1)])
def test_verify_replays_a_written_log_with_a_build(session: Session, tmp_path: Path, change: str, code: int) -> None:
    log = tmp_path / "played.hitlog"
    write_session(log, gap=False)
    build = session.folder / "build.py"
    build.write_text(BUILD.format(python=sys.executable, change=change))
    build.chmod(build.stat().st_mode | stat.S_IXUSR)
    output = session.run("verify", log, "--build", build, expect=code)
    assert "1 ok" in output if code == 0 else "101" in output, output


@pytest.mark.parametrize(
    "table, columns, what",
    [
        ("frame", {"at_us": 0}, "no table 'frame'"),
        ("frames", {"at_us": 0, "leen": 1}, "leen is none of"),
        ("frames", {"seq": 1}, "'at_us' is missing"),
        ("frames", {"at_us": 0, "player": 2}, "player 2, which is not in 0 to 1"),
        ("frames", {"at_us": [0, 1], "seq": [1, 2, 3]}, "column at_us has 2 values, and another column has 3"),
        ("frames", {"at_us": 0, "buttons": -1}, "-1 is no u32"),
        ("frames", {"at_us": 0, "buttons": 1.5}, "float64 is no u32"),
        ("frames", {"at_us": 0, "msec": 256}, "msec: 256 is no u32 from 0 to 255"),
        ("frames", {"at_us": 0, "player": 0.5}, "player: float64"),
        ("frames", {"at_us": 2**63}, "at_us: 9223372036854775808 is no i64"),
        ("executed", {"tick": 1, "how": "ran"}, "not in list"),
        ("executed", {"tick": 1, "how": 9}, "how: 9 is no u32 from 0 to 4"),
        ("ticks", {"at_us": 0, "tick": 1, "hash": np.array([-1])}, "hash: -1 is no u64"),
        ("states", {"tick": 1, "viewer": -2}, "viewer -2, which is not in -1 to 1"),
        ("states", {"tick": 1, "entity": [0, 65536]}, "entity 65536, which is not in 0 to 65535"),
        ("casts", {"at_us": 0, "id": [-1]}, "id: -1 is no u64"),
        ("casts", {"at_us": 0, "id": [2**64]}, "no type of 64 bits holds"),
        ("frames", {"at_us": 0, "yaw": 2**24 + 1}, "yaw: 16777217 is no f32"),
        ("frames", {"at_us": 0, "yaw": [0.5, 2**53 + 1]}, "9007199254740993 is no f64"),
        ("frames", {"at_us": 0, "yaw": 1e300}, "yaw: 1e\\+300 is no f32"),
        ("casts", {"at_us": [0, 1], "fuel": [1, 2**53 + 1]}, "fuel: 9007199254740993 is no f64"),
        ("casts", {"at_us": 0, "fuel": np.array([2**63 - 1])}, "fuel: 9223372036854775807 is no f64"),
        ("casts", {"at_us": 0, "fuel": np.array([2**53 + 1, 1], object)}, "fuel: 9007199254740993 is no f64"),
        ("casts", {"at_us": 0, "money": [2**63]}, "money: 9223372036854775808 is no i64"),
        ("casts", {"at_us": 0, "mood": [5]}, "mood: its values are not all texts"),
        ("judged", {"at_us": [0, 1], "weapon": 3}, "weapon: its values are not all texts"),
        ("casts", {"at_us": 0, "mood": "\ud800"}, "surrogates"),
    ],
)
def test_wrong_rows_are_refused(table: str, columns: dict, what: str, tmp_path: Path) -> None:
    with pytest.raises(hitreg.HitregError, match=what):
        about = {"game": "g", "players": ["a", "b"], "classes": {"player": FIELDS}, "kinds": {"casts": FIELDS}}
        with hitreg.LogWriter(tmp_path / "a.hitlog", **about) as log:
            log.write(table, columns)
    assert list(tmp_path.iterdir()) == [], "nothing is left of a failed log"


def test_a_log_may_have_tables_without_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.hitlog"
    with hitreg.LogWriter(path, game="g", players=["a"], classes={"player": FIELDS}) as log:
        log.write("frames", {"player": [], "seq": [], "at_us": [], "msec": 16})
        log.write("ticks", {"tick": [], "at_us": []})
        log.write_states("player", {"tick": [], "entity": []})
    assert hitreg.open_log(path)["frames"].rows == 0


def write_tick(path: Path, **more: bool) -> None:
    with hitreg.LogWriter(path, game="g", players=["a"], **more) as log:
        log.write("ticks", {"tick": 1, "at_us": 10})


def write_trace(path: Path) -> None:
    with hitreg.TraceWriter(path, game="g") as trace:
        trace.write("ticks", {"tick": [1]})


def test_no_other_file_is_replaced(tmp_path: Path) -> None:
    log, trace, notes = (tmp_path / name for name in ("a.hitlog", "a.hittrace", "notes.txt"))
    write_tick(log)
    with pytest.raises(hitreg.HitregError, match="this log exists already: name another file, or pass force=True"):
        write_tick(log)
    write_tick(log, force=True)
    write_trace(trace)
    write_trace(trace)
    notes.write_text("my notes")
    kept = {path: path.read_bytes() for path in (log, trace, notes)}
    for path in (trace, notes):
        with pytest.raises(hitreg.HitregError, match="is not a hitreg log; not overwritten"):
            write_tick(path, force=True)
    for path in (log, notes):
        with pytest.raises(hitreg.HitregError, match="is not a hitreg trace; not overwritten"):
            write_trace(path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == kept
    (tmp_path / "empty").touch()
    write_tick(tmp_path / "empty")
    assert hitreg.open_log(tmp_path / "empty")["ticks"].rows == 1


def test_an_unfinished_recording_is_kept(tmp_path: Path) -> None:
    part = tmp_path / "a b.part"
    part.write_bytes(b"rows of a crashed recorder")
    with pytest.raises(hitreg.HitregError, match="unfinished recording has this name. Run: hitreg recover '.*a b.part'"):
        write_tick(tmp_path / "a b", force=True)
    with pytest.raises(hitreg.HitregError, match="unfinished recording"):
        write_trace(tmp_path / "a b")
    assert part.read_bytes() == b"rows of a crashed recorder" and list(tmp_path.iterdir()) == [part]


def test_a_file_that_appears_during_a_recording_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.hitlog"
    log = hitreg.LogWriter(path, game="g", players=["a"])
    log.write("ticks", {"tick": 1, "at_us": 10})
    path.write_text("my notes")
    with pytest.raises(hitreg.HitregError, match="is not a hitreg log"):
        log.close()
    assert path.read_text() == "my notes" and hitreg.open_log(f"{path}.part")["ticks"].rows == 1


def test_lists_of_large_integers_stay_exact(tmp_path: Path) -> None:
    large = [2**64 - 1, 0, 2**63 + 1]
    with hitreg.LogWriter(tmp_path / "a.hitlog", game="g", players=["a"], kinds={"casts": FIELDS}) as log:
        log.write("casts", {"at_us": [], "id": []})
        log.write("casts", {"at_us": [0, 1, 2], "id": large})
    assert hitreg.open_log(tmp_path / "a.hitlog")["casts"]["id"].tolist() == large
    with hitreg.TraceWriter(tmp_path / "a.hittrace", game="g") as trace:
        trace.write("ticks", {"tick": [1, 2, 3], "hash": large})
        with pytest.raises(hitreg.HitregError, match="no type of 64 bits holds -1 and 9223372036854775808"):
            trace.write("other", {"value": [-1, 2**63]})
    assert hitreg.open_trace(tmp_path / "a.hittrace")["ticks"]["hash"].tolist() == large


def number(name: str) -> hitreg.Field:
    return hitreg.Field(name, "u32")


@pytest.mark.parametrize(
    "about, what",
    [
        ({"classes": {"c": [number("entity")]}}, "class 'c' has two columns of the name 'entity'"),
        ({"classes": {"c": [number("viewer")]}}, "class 'c' has two columns of the name 'viewer'"),
        ({"classes": {"c": [number("x"), number("x")]}}, "class 'c' has two columns of the name 'x'"),
        ({"classes": {"": [number("x")]}}, "empty name"),
        ({"usercmd_fields": [number("pitch")]}, "a usercmd has two columns of the name 'pitch'"),
        ({"usercmd_fields": [number("seq")]}, "of the name 'seq'"),
        ({"usercmd_fields": [number("own.x")]}, "of the name 'own.x'"),
        ({"usercmd_fields": [number("drawn.x")]}, "of the name 'drawn.x'"),
        ({"usercmd_fields": [number("lean"), number("lean")]}, "of the name 'lean'"),
        ({"usercmd_fields": [number("")]}, "empty name"),
        ({"kinds": {"casts": [number("series")]}}, "kind 'casts' has two columns of the name 'series'"),
        ({"kinds": {"casts": [number("at_us")]}}, "of the name 'at_us'"),
        *(({"kinds": {name: []}}, f"no custom kind can have the name '{name}'") for name in TAKEN_KINDS),
        ({"game": ""}, "the game and the map need names"),
        ({"players": []}, "a list of players"),
        ({"players": "abc"}, "a list of players"),
        ({"players": [None]}, "a list of players"),
        ({"seed": -1}, "the seed is -1"),
        ({"seed": 2**64}, "the seed is 18446744073709551616"),
        ({"settings": {"a b": 1}}, "a setting is called 'a b'"),
        ({"settings": {"server.tick_hz": 0}}, "the tick rate is 0"),
        ({"rules": b"0" * ((11 << 20) + 1)}, "a log takes at most 11534336"),
    ],
)
def test_descriptions_that_the_recorder_refuses_are_refused(about: dict, what: str, tmp_path: Path) -> None:
    with pytest.raises(hitreg.HitregError, match=what):
        hitreg.LogWriter(tmp_path / "a.hitlog", **{"game": "g", "players": ["a"], **about})
    assert list(tmp_path.iterdir()) == []


def test_refused_names_are_those_of_hitregs_tables() -> None:
    page = (ROOT / "docs/tables.md").read_text()
    tables = {*re.findall("^### `(.*)`$", page, re.M)} - {"corrections", "errors"}
    assert tables | {"usercmd_bytes"} == {*TRACE_TABLES} | tables & {*KINDS}
    frames = page.partition("### `frames`")[2].partition("###")[0]
    columns = {name.partition(".")[0] for line in frames.splitlines() for name in re.findall("^[|] `(.*?)`", line)}
    assert columns | {of.name for of in KINDS["frames"]} | {"own"} == FRAMES_COLUMNS


def test_allowed_names_are_columns_of_their_own(session: Session, tmp_path: Path) -> None:
    names, path = ("extra", "extra_bytes", "bytes", "packet"), tmp_path / "a.hitlog"
    about = {"usercmd_fields": [number(name) for name in names], "settings": {"lag_compensation.enabled": False}}
    kinds = {"statesman": [number("x")], "heard.usercmds": [number("x")], "snapshots.entities": [number("x")]}
    with hitreg.LogWriter(path, game="mygame", players=["a"], kinds=kinds, **about) as log:
        log.write("ticks", {"tick": [1, 2], "at_us": [10_000, 20_000]})
        log.write("frames", {"seq": [1, 2], "at_us": [9_000, 19_000], **{name: [7, 8] for name in names}})
        for kind in kinds:
            log.write(kind, {"at_us": [1, 2], "series": [3, 4], "x": [5, 6]})
    check_log(session, path)
    log = hitreg.open_log(path)
    assert [log["frames"][name].tolist() for name in names] == [[7, 8]] * 4
    assert log.header.settings == {"lag_compensation.enabled": "false"}


@pytest.mark.parametrize("step_us, lead_us, delay_us", [(16_666, 0, 500), (10_000, 9_700, 500), (10_000, 0, 30_000)])
def test_snapshots_show_the_states_of_their_tick(
    session: Session, tmp_path: Path, step_us: int, lead_us: int, delay_us: int
) -> None:
    path, at = tmp_path / "a.hitlog", step_us * TICKS
    with hitreg.LogWriter(path, game="mygame", players=["a"], classes={"player": FIELDS[:1]}) as log:
        for part in (TICKS < 130, TICKS >= 130):
            ticks, times = TICKS[part], at[part]
            log.write("ticks", {"tick": ticks, "at_us": times})
            log.write("frames", {"seq": ticks, "at_us": times - lead_us})
            for entity in (0, 1):
                log.write_states("player", {"tick": ticks, "entity": entity, "origin.x": ticks})
            log.write("snapshots", {"seq": ticks, "tick": ticks, "at_us": times + delay_us})
            log.write("received", {"number": ticks, "at_us": times + delay_us + 20_000})
            log.flush()
    check_log(session, path)
    assert hitreg.open_log(path)["snapshots"]["entities"].tolist() == [2] * 300
    assert set(exported(session, path, "snapshots")["entities"]) == {"2"}


@pytest.mark.parametrize("states_first", [True, False])
def test_states_and_snapshots_of_a_tick_are_in_one_flush(tmp_path: Path, states_first: bool) -> None:
    snapshots, states = {"tick": [1, 2], "at_us": [11_000, 21_000]}, {"tick": [1, 2], "entity": 0}
    with hitreg.LogWriter(tmp_path / "a.hitlog", game="g", players=["a"], classes={"c": FIELDS[:1]}) as log:
        log.write("ticks", {"tick": [1, 2], "at_us": [10_000, 20_000]})
        order = [("states", states), ("snapshots", snapshots)][:: 1 if states_first else -1]
        log.write(*order[0])
        log.flush()
        with pytest.raises(hitreg.HitregError, match=f"flush has written {order[0][0]} of tick 1: write all"):
            log.write(*order[1])
    assert hitreg.open_log(tmp_path / "a.hitlog")["snapshots"].rows == (0 if states_first else 2)


def test_data_frames_are_written(session: Session, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"at_us": [5, 6], "said": ["x", "y"]}, index=[8, 9])
    log_path, trace_path = tmp_path / "a.hitlog", tmp_path / "a.hittrace"
    kinds = {"chat": [hitreg.Field("said", "text")]}
    with hitreg.LogWriter(log_path, game="g", players=["a"], kinds=kinds) as log:
        log.write("chat", frame)
    with hitreg.TraceWriter(trace_path, game="g") as trace:
        trace.write("chat", frame)
        trace.write("chat", frame)
    for path, copies in ((log_path, 1), (trace_path, 2)):
        assert exported(session, path, "chat")["said"] == ["x", "y"] * copies


@pytest.mark.parametrize(
    "columns, more, what",
    [
        ({"v": [1]}, {"key": ["w"]}, "its key or units name w, which is no column"),
        ({"v": [1]}, {"units": {"w": "ms"}}, "its key or units name w, which is no column"),
        ({"v": ["a", None]}, {}, "column v: its values are not all texts"),
        ({"v": ["a", 3]}, {}, "column v: its values are not all texts"),
        ({"v": np.array(["a", np.nan], object)}, {}, "column v: its values are not all texts"),
        ({"v": [1, 2], "w": [1, 2, 3]}, {}, "column v has 2 values, and another column has 3"),
    ],
)
def test_wrong_rows_of_a_trace_are_refused(tmp_path: Path, columns: dict, more: dict, what: str) -> None:
    with hitreg.TraceWriter(tmp_path / "a.hittrace", game="g") as trace:
        with pytest.raises(hitreg.HitregError, match=f"table mine: {what}"):
            trace.write("mine", columns, **more)


def test_texts_that_no_reader_takes_are_refused(tmp_path: Path) -> None:
    most = (4 << 20) - 64
    about = {"game": "g", "players": ["a"], "kinds": {"chat": [hitreg.Field("said", "text", "status")]}}
    with hitreg.LogWriter(tmp_path / "a.hitlog", **about) as log:
        log.write("chat", {"at_us": [0, 1, 2], "said": ["x" * (most - 65), "", "y"]})
        log.write("chat", {"at_us": 3, "said": "y"})
    assert hitreg.open_log(tmp_path / "a.hitlog")["chat"]["said"].tolist()[1:] == ["", "y", "y"]
    with pytest.raises(hitreg.HitregError, match="table chat: the different texts of a session take at most 4 MiB"):
        with hitreg.LogWriter(tmp_path / "b.hitlog", **about) as log:
            log.write("chat", {"at_us": [0, 1], "said": ["x" * (most - 65), ""]})
            log.write("chat", {"at_us": 2, "said": "yz"})
    assert not (tmp_path / "b.hitlog").exists()


def test_data_frames_and_arrow_tables(session: Session) -> None:
    log = hitreg.open_log(session.folder / "arena.hitlog")
    trace = hitreg.open_trace(session.folder / "arena.hittrace")
    for file in (log, trace):
        for name in file.tables:
            table = file[name]
            frame, arrow = table.to_pandas(), table.to_arrow()
            assert len(frame) == arrow.num_rows == table.rows
            for column in table:
                expected = table[column].tolist()
                np.testing.assert_array_equal(frame[column].tolist(), expected)
                np.testing.assert_array_equal(arrow[column].to_pylist(), expected)
                unit = (arrow.schema.field(column).metadata or {}).get(b"unit", b"").decode()
                assert unit == frame.attrs["units"].get(column, "") == table.columns[column].unit
    assert trace["shots"].units["view_error_units"] == "units"
    assert log["states"].units["origin.x"] == "units" and log["frames"].units["at_us"] == "µs"
    assert json.loads(json.dumps(log["frames"].units))
