"""Every value equals the one that `hitreg export` writes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import hitreg
import msgpack
import numpy as np
import pytest
import zstandard
from conftest import ROOT, Session

FIXTURES = sorted([*ROOT.glob("fixtures/sessions/*.hitlog"), *ROOT.glob("fixtures/compat/*")])


def exported(session: Session, path: Path, table: str) -> dict[str, list]:
    """The columns of a table as JSON values; numbers as text, because a JSON number has no -0."""
    lines = session.run("export", path, "--table", table).split("\n")[:-1]
    rows = [json.loads(line, parse_int=str, parse_float=str) for line in lines]
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}


def tables_of(session: Session, path: Path) -> dict[str, int]:
    return {of["table"]: of["rows"] for of in json.loads(session.run("export", path, "--format", "json"))}


def same(found: np.ndarray, expected: list, what: str) -> None:
    """Compares a column bit for bit."""
    assert len(found) == len(expected), what
    if found.dtype.kind == "f":
        # NaN is null, and infinite numbers are text.
        known = ~np.isnan(found)
        assert [value is not None for value in expected] == known.tolist(), what
        texts = np.array([value for value in expected if value is not None], dtype="U")
        numbers = texts.astype(np.float64).astype(found.dtype)
        assert numbers.tobytes() == found[known].tobytes(), what
    elif found.dtype == np.uint64:
        # A tick without a hash is null in exports, and 0 in the file.
        is_hash = "hash" in what
        numbers = [0 if value is None and is_hash else int(value, 16 if is_hash else 10) for value in expected]
        assert numbers == found.tolist(), what
    elif found.dtype.kind in "iu":
        assert [int(value) for value in expected] == found.tolist(), what
    else:
        assert expected == found.tolist(), what


def check_trace(session: Session, path: Path) -> None:
    trace = hitreg.open_trace(path)
    tables = tables_of(session, path)
    assert list(tables) == trace.tables and not trace.damage
    for name, rows in tables.items():
        table = trace[name]
        assert table.rows == rows
        columns = exported(session, path, name)
        assert rows == 0 or list(columns) == list(table), name
        if name == "shots" and columns:
            # Exports leave cells empty that no server of the trace decided.
            unjudged = [[value is None for value in columns[of]] for of in ("rewind_us", "limit")]
            assert unjudged[0] == unjudged[1]
        for column, expected in columns.items():
            is_optional = name == "shots" and column in ("rewind_us", "limit", "damage")
            given = np.array([value is not None or not is_optional for value in expected], bool)
            known = [value for value, is_given in zip(expected, given) if is_given]
            same(table[column][given], known, f"{name}.{column}")


def foreign(session: Session, log: Path) -> Path:
    """A copy of a log of a game that hitreg does not know, so that it exports the records without a replay."""
    data, path = log.read_bytes(), session.folder / "foreign.hitlog"
    start = zstandard.ZstdDecompressor().decompressobj()
    first = msgpack.unpackb(start.decompress(data))
    first["sealed"], first["header"]["game"] = False, "unknown"
    compressor = zstandard.ZstdCompressor(write_checksum=True, write_content_size=True)
    rest = start.unused_data
    # The seal and the seek table belong to the first header.
    rest = rest[: rest.rfind(b"\x50\x2a\x4d\x18\x10\0\0\0hitseal\0")]
    path.write_bytes(compressor.compress(msgpack.packb(first)) + rest)
    return path


def recorded_bodies(log: hitreg.Log, name: str) -> dict[str, np.ndarray]:
    """The states of a class for everyone, as hitreg exports them: `bodies` for the first class, then `bodies.CLASS`."""
    class_name = name.partition(".")[2] or log.header.classes[0].name
    table = log.states(class_name)
    table = table.take(table["viewer"] < 0)
    columns = {column: table[column] for column in table if column != "viewer"}
    order = np.lexsort((columns["entity"], columns["tick"]))
    return {column: values[order] for column, values in columns.items()}


def recorded_network(log: hitreg.Log, name: str) -> dict[str, np.ndarray]:
    """The packets or the snapshots with their arrivals, as hitreg exports them."""
    sent, arrivals = {"packets": ("sent", "reached"), "snapshots": ("snapshots", "received")}[name]
    found = dict(log[sent])
    number = found["number" if name == "packets" else "seq"]
    counts: dict[tuple[int, int], int] = {}
    first: dict[tuple[int, int], int] = {}
    if arrivals in log:
        table = log[arrivals]
        for player, arrived, at_us in zip(*(table[column].tolist() for column in ("player", "number", "at_us"))):
            key = (player, arrived)
            counts[key] = counts.get(key, 0) + 1
            first[key] = min(at_us, first.get(key, at_us))
    keys = list(zip(found["player"].tolist(), number.tolist()))
    took_ms = [(first[key] - at_us) / 1000 if key in first else np.nan for key, at_us in zip(keys, found["at_us"].tolist())]
    found.update(arrived=np.array([counts.get(key, 0) for key in keys], np.uint32), took_ms=np.array(took_ms, np.float32))
    found.update({"packet": number, "usercmds": found["count"]} if name == "packets" else {"snapshot": number})
    return found


def check_gaps(gaps: Mapping[str, np.ndarray], columns: dict[str, list]) -> None:
    """Compares the gaps of a log, whose order in the file is that of players."""
    players = ["all" if one < 0 else f"p{one}" for one in gaps["player"].tolist()]
    found = zip(gaps["from_us"].tolist(), gaps["at_us"].tolist(), players, gaps["why"].tolist())
    given = zip(map(int, columns["from_us"]), map(int, columns["to_us"]), columns["player"], columns["why"])
    assert sorted(found) == sorted(given)


def check_log(session: Session, path: Path) -> None:
    log = hitreg.open_log(path)
    copy = foreign(session, path)
    tables = tables_of(session, copy)
    assert not log.damage
    compared = set()
    for name in tables:
        columns = exported(session, copy, name)
        if name == "shots":
            check_shots(log, columns)
            continue
        if name == "gaps":
            check_gaps(log["gaps"], columns)
            continue
        if name.partition(".")[0] == "bodies":
            found = recorded_bodies(log, name) if log.header.classes else {key: np.zeros(0, np.uint32) for key in ("tick", "entity")}
        elif name in ("packets", "snapshots"):
            found = recorded_network(log, name)
        elif name == "usercmd_bytes":
            frames = log["frames"]
            has = np.array([len(one) > 0 for one in frames["bytes"]], bool)
            found = {"player": frames["player"][has], "at_us": frames["at_us"][has], "command": frames["seq"][has]}
            assert [one.hex() for one in frames["bytes"][has]] == list(columns.pop("bytes"))
        else:
            found = dict(log[name])
        if name == "frames":
            found.update(command=found["seq"], lerp_msec=found["lerp_ms"])
        if name == "damage":
            found["attacker"] = np.array([entity_name(one, len(log.header.players)) for one in found["attacker"]])
            # Rows without a value have NaN.
            nan = np.float32("nan")
            found["armour"] = np.where(found["armour"] < 0, nan, found["armour"]).astype(np.float32)
            for axis in "xyz":
                found[f"force.{axis}"] = np.where(found["forced"], found[f"force_{axis}"], nan)
        for column, expected in columns.items():
            same(found[column], expected, f"{name}.{column}")
        compared.add(name)
    known = {"bodies" if name.startswith("states") else name for name in log.tables if "." not in name}
    links = {"sent", "reached", "heard", "received", "snapshots", "presence", "gaps", "predicted", "judged", "states"}
    assert known - links <= compared


def entity_name(entity: int, players: int) -> str:
    return "none" if entity < 0 else f"p{entity}" if entity < players else f"entity {entity}"


def check_shots(log: hitreg.Log, columns: dict[str, list]) -> None:
    keys = list(zip(*(map(int, columns[name]) for name in ("shooter", "command", "index"))))
    for kind, prefix, none in (("judged", "", ("not run", "no server")), ("predicted", "predicted_", ("not predicted",))):
        table = log[kind] if kind in log else None
        rows: dict[tuple[int, int, int], int] = {}
        names = ("player", "command", "shot", "impact")
        for row, (player, command, index, impact) in enumerate(zip(*(table[name].tolist() for name in names)) if table else ()):
            # Impacts have indices from 255 down; shots with equal indices get the next free ones.
            free = [*range(255 - min(index, 254), 0, -1), *range(256, 1000)] if impact else range(index, 1000)
            rows[next((player, command, of) for of in free if (player, command, of) not in rows)] = row
        for row, key in enumerate(keys):
            if key not in rows:
                assert columns[f"{prefix}reason"][row] in none
                continue
            at = rows[key]
            target = table["target"][at]
            assert columns[f"{prefix}reason"][row] == table["reason"][at]
            assert columns[f"{prefix}target"][row] == entity_name(target, len(log.header.players))
            assert int(columns[f"{prefix}damage"][row]) == table["damage"][at]
            if target >= 0:
                assert columns[f"{prefix}hitgroup"][row] == str(table["hitgroup"][at])
            if kind == "judged":
                assert int(columns["rewind_us"][row]) == table["rewound_us"][at]
                assert int(columns["at_us"][row]) == table["at_us"][at]
        assert {*rows} <= {*keys}


def test_trace_of_a_replay(session: Session) -> None:
    check_trace(session, session.folder / "arena.hittrace")
    views = hitreg.open_trace(session.folder / "arena.hittrace")["views"]
    assert set(views["how"]) > {"interpolated"}, "packed views have other rows too"


def test_log_of_the_arena(session: Session) -> None:
    check_log(session, session.folder / "arena.hitlog")


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.name)
def test_fixture(session: Session, path: Path) -> None:
    (check_log if path.suffix == ".hitlog" else check_trace)(session, path)


@pytest.fixture(scope="session", params=["half-life", "quake3", "nereids"])
def preset(session: Session, request: pytest.FixtureRequest) -> Path:
    """The log of a session with a preset; the trace is beside it."""
    path = session.folder / f"{request.param}.hitlog"
    links = ["--delay-ms", 50, "--jitter-ms", 15, "--loss", "5%"]
    session.run("record", "synth", "-o", path, "--preset", request.param, "--seconds", 4, *links)
    session.run("replay", path, "-o", path.with_suffix(".hittrace"))
    return path


def test_presets(session: Session, preset: Path) -> None:
    check_log(session, preset)
    check_trace(session, preset.with_suffix(".hittrace"))


def test_log_and_trace_of_pucks(session: Session) -> None:
    session.made(session.example("pucks"), "record", "synth", "-o", "pucks.hitlog", "--seconds", 4)
    session.made(session.example("pucks"), "replay", "pucks.hitlog", "-o", "pucks.hittrace")
    check_log(session, session.folder / "pucks.hitlog")
    check_trace(session, session.folder / "pucks.hittrace")


def test_links_equal_those_of_the_replay(preset: Path) -> None:
    """Times relative to other records: packets and snapshots of a trace come from the log."""
    log, trace = hitreg.open_log(preset), hitreg.open_trace(preset.with_suffix(".hittrace"))
    for sent, number, arrived, rows, key, columns in (
        ("sent", "number", "reached", "packets", "packet", {"usercmds": "count", "newest": "newest"}),
        ("snapshots", "seq", "received", "snapshots", "snapshot", dict.fromkeys(SNAPSHOT_COLUMNS)),
    ):
        records, arrivals, expected = log[sent], log[arrived], trace[rows]
        expected = expected.take(np.lexsort((expected[key], expected["player"])))
        for column, of in {key: number, "player": "player", "at_us": "at_us", "ack": "ack", **columns}.items():
            np.testing.assert_array_equal(expected[column], records[of or column], f"{rows}.{column}")
        sent_at = dict(zip(zip(records["player"], records[number]), records["at_us"]))
        first: dict[tuple[int, int], list[int]] = {}
        for player, name, at in zip(arrivals["player"], arrivals["number"], arrivals["at_us"]):
            first.setdefault((player, name), []).append(at)
        for player, name, took, times in zip(*(expected[of] for of in ("player", key, "took_ms", "arrived"))):
            found = first.get((player, name), [])
            assert len(found) == times
            assert not found or took == pytest.approx((min(found) - sent_at[player, name]) / 1000, abs=1e-3)
    for name in ("entities", "effects", "warnings"):
        assert log[f"snapshots.{name}"].rows == log["snapshots"][name].sum()
    assert log["snapshots.effects"].rows > 0
    known = ~np.isnan(log["snapshots"]["helper_ms"])
    assert known.any() == (preset.stem == "nereids")


SNAPSHOT_COLUMNS = ("entities", "effects", "choked", "helper_ms", "warnings")


def test_heard_usercmds_equal_the_clients_own(session: Session) -> None:
    (session.folder / "sides").mkdir()
    session.made(session.example("sides"), 6, 3, session.folder / "sides")
    server = hitreg.open_log(session.folder / "sides/server.hitlog")
    # The server heard each packet when it arrived.
    assert server["heard"]["at_us"].tolist() == server["reached"]["at_us"].tolist()
    heard = server["heard.usercmds"]
    assert heard.rows > 1000
    for player in range(3):
        log = hitreg.open_log(session.folder / f"sides/client{player}.hitlog")
        assert log.header.side.player == player
        frames, mine = log["frames"], heard.take(heard["player"] == player)
        places = np.searchsorted(frames["seq"], mine["seq"])
        for column in ("seq", "lerp_ms", "msec", "pitch", "yaw", "forwardmove", "sidemove", "buttons"):
            assert frames[column][places].tobytes() == mine[column].tobytes(), column


def test_own_fields_and_kinds(session: Session) -> None:
    session.made(session.c_example("everything"), "everything.hitlog")
    path = session.folder / "everything.hitlog"
    check_log(session, path)
    log = hitreg.open_log(path)
    assert log["frames"]["lean"].dtype == np.float32 and log["frames"]["stance"].dtype == np.int32
    assert set(log["states"]["viewer"]) == {-1, 0}


@pytest.mark.parametrize("seed", [1, 7, 11])
def test_random_records(session: Session, seed: int) -> None:
    """Numbers of any size in fields and columns of all types."""
    session.made(session.c_example("anything"), ".", seed, 1)
    check_log(session, session.folder / f"anything-{seed}.hitlog")
