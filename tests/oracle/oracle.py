#!/usr/bin/env python3
"""Recounts the figures of `hitreg replay --format json` from exported CSV tables, independently of hitreg's code.

    hitreg export a.hitlog --all --to csv -o csv && hitreg replay a.hitlog --format json > replay.json
    tests/oracle/oracle.py csv replay.json [info.json]

Definitions, which each function repeats where it uses them:

- A hit is a judged shot or an impact whose reason is `hit`. Its target is who was hit.
- A shot is a row that the server ran: a judged shot or a launch. An impact is the end of a launched projectile, not
  another shot. An impact without its launch in the table counts as a shot. A shot that was `not run` is no shot.
- A hit that the recorded server reported (`given_target`) is no shot if nothing was judged again: it has no rewind, no
  target of the present and no distance to the line of fire. An impact's launch must be unknown, too.
- View error is the distance between where the shooter's screen had the target and where the server judged it.
  The target of a hit is who was hit; of a miss, who on the screen was nearest to the line. Launches and impacts have
  no view error: a projectile meets its target later.
- A packet is lost when it never arrived and a later packet of its player and direction did. A packet after the last
  that arrived is in flight: neither lost nor arrived.
- A miss is a checked prediction that was neither exact nor near; it has one cause. A correction is a row with a cause:
  a miss, or a smaller difference that changed the predicted state.
- Respawns and teleports are counted apart from the error of corrections.
"""

from __future__ import annotations

import base64
import collections
import csv
import json
import math
import re
import struct
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterable, Iterator

Row = dict[str, str]
TOLERANCE = 0.001


def read_rows(path: Path) -> list[Row]:
    """The rows of a CSV file; none if it does not exist."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@dataclass
class Page:
    """The data of a page of `report`: its contents, and the bytes of its columns."""

    contents: dict[str, Any]
    columns: bytes

    @staticmethod
    def read(path: Path) -> Page:
        """The contents of a page."""
        found = re.search(r'id="data">\s*([^<]+)', path.read_text())
        if found is None:
            raise ValueError(f"{path} embeds no data")
        packed = zlib.decompress(base64.b64decode(found[1]))
        (length,) = struct.unpack("<I", packed[:4])
        return Page(json.loads(packed[4 : 4 + length]), packed[4 + length :])

    def values(self, column: dict[str, Any]) -> list[float]:
        """A column as numbers: sums of prediction errors, each with seven bits a byte and its sign in the lowest bit."""
        at, before, step, found = column["at"], 0, 0, []
        for _ in range(column["rows"]):
            value, shift = 0, 0
            while True:
                byte = self.columns[at]
                at += 1
                value |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    break
            surprise = value // 2 if value % 2 == 0 else -(value + 1) // 2
            step = step + surprise if column["order"] == 2 else surprise
            before += step
            found.append(before * column["unit"])
        return found

    def packets(self, way: str) -> dict[str, int]:
        """Packets of one direction (`up` or `down`): the numbers of shown and of lost ones."""
        told = [part for part in self.contents["sides"][0]["packets"] if part["way"] == way]
        transit = [value for part in told for value in self.values(part["transit_us"])]
        return {"shown": len(transit), "lost": sum(value < 0 for value in transit)}


def stream_rows(path: Path, columns: list[str]) -> Iterator[list[str]]:
    """Some columns of a large CSV file, row by row, in the given order."""
    if not path.exists():
        return
    with path.open(newline="") as file:
        reader = csv.reader(file)
        header = next(reader, [])
        places = [header.index(column) for column in columns]
        for row in reader:
            yield [row[place] for place in places]


def count_rows(path: Path) -> int:
    """The number of rows in a CSV file. No cell of a trace has a line break."""
    with path.open("rb") as file:
        return max(sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b"")) - 1, 0)


def number(text: str, digits: int | None = None) -> float | None:
    """The number in a cell; `None` if the cell is empty."""
    if text == "":
        return None
    return float(text) if digits is None else round(float(text), digits)


def numbers(rows: Iterable[Row], column: str) -> list[float]:
    """The numbers of a column, without empty cells."""
    return [float(row[column]) for row in rows if row.get(column, "") not in ("", "NaN")]


def spread(values: list[float]) -> dict[str, float] | None:
    """Median, 95th percentile and maximum, by nearest rank: the smallest value that this share does not exceed."""
    if not values:
        return None
    ascending = sorted(values)
    rank = lambda percent: ascending[max(math.ceil(percent / 100 * len(ascending)), 1) - 1]  # noqa: E731
    return {"p50": rank(50), "p95": rank(95), "max": ascending[-1]}


class Checker:
    """Collects disagreements."""

    def __init__(self) -> None:
        self.wrong: list[str] = []

    def equal(self, what: str, told: Any, counted: Any) -> None:
        """Counts must be equal."""
        if told != counted:
            self.wrong.append(f"{what}: hitreg {told}, oracle {counted}")

    def close(self, what: str, told: dict[str, float] | None, counted: dict[str, float] | None) -> None:
        """Distances and times must be within 0.001."""
        if (told is None) != (counted is None):
            self.wrong.append(f"{what}: hitreg {told}, oracle {counted}")
        for key in told or {}:
            # Cells are float32 in shortest form, so both sides have the same value.
            if key in counted and abs(told[key] - counted[key]) > TOLERANCE:
                self.wrong.append(f"{what}.{key}: hitreg {told[key]}, oracle {counted[key]}")


def only_reported(row: Row, launches: set[tuple[str, str]]) -> bool:
    """Whether a row is a hit of an unknown shot, which the recorded server reported."""
    if row.get("given_target", "none") in ("none", ""):
        return False
    if row["impact"] == "1":
        return (row["shooter"], row["command"]) not in launches
    is_judged = row["rewind_us"] not in ("", "0") or row.get("present_target", "none") not in ("none", "") or row.get("off_units")
    return not is_judged


def without_reported(rows: list[Row]) -> list[Row]:
    """The rows of known shots."""
    launches = {(row["shooter"], row["command"]) for row in rows if row["reason"] == "launched"}
    return [row for row in rows if not only_reported(row, launches)]


def check_shots(rows: list[Row], told: dict[str, Any], checker: Checker) -> None:
    """Shots, hits, results on the screens, and rewinds."""
    known = without_reported(rows)
    checker.equal("shots.reported", told["reported"], len(rows) - len(known))
    rows = known
    if told["fired"] is None:
        # A replay without a server: only the predictions are known.
        checker.equal("shots that ran without a server", 0, sum(row["reason"] != "no server" for row in rows))
        checker.equal("shots.predicted", told["predicted"], len(rows))
        checker.equal("shots.predicted_hit", told["predicted_hit"], sum(row["predicted_reason"] == "hit" for row in rows))
        for unknown in ("hit", "agreed", "rewound", "not_run", "view_error_units"):
            checker.equal(f"shots.{unknown}", told[unknown], None)
        return
    run = [row for row in rows if row["impact"] == "0" and row["reason"] != "not run"]
    impacts = [row for row in rows if row["impact"] == "1"]
    launched = sum(row["reason"] == "launched" for row in run)
    seen = [row for row in run if row["predicted_reason"] != "not predicted"]
    checker.equal("shots.fired", told["fired"], len(run) + max(len(impacts) - launched, 0))
    checker.equal("shots.hit", told["hit"], sum(row["reason"] == "hit" for row in rows))
    if told["predicted"] is None:
        # No client ran: nothing is known about screens.
        checker.equal("shots with a prediction and without clients", 0, len(seen))
        for unknown in ("predicted_hit", "agreed", "not_run"):
            checker.equal(f"shots.{unknown}", told[unknown], None)
    else:
        checker.equal("shots.predicted", told["predicted"], len(seen))
        checker.equal("shots.predicted_hit", told["predicted_hit"], sum(row["predicted_reason"] == "hit" for row in run))
        checker.equal("shots.agreed", told["agreed"], sum(row["predicted_target"] == row["target"] for row in seen))
    checker.equal("shots.rewound", told["rewound"], sum(row["rewind_us"] not in ("", "0") for row in run))
    measured = [row for row in run if row["reason"] != "launched"]
    checker.close("shots.view_error_units", told["view_error_units"], spread(numbers(measured, "view_error_units")))


def check_shot_rows(rows: list[Row], checker: Checker) -> None:
    """Each row: no rewind below zero, no view error of a projectile, a target for each hit."""
    for row in rows:
        name = f"p{row['shooter']}#{row['command']}"
        # `?`: the recording has the hit without its target.
        if row["reason"] == "hit" and row["target"] == "none" and row.get("given_target") != "?":
            checker.wrong.append(f"{name}: a hit of no target")
        if row["reason"] != "hit" and row["target"] not in ("none", "") and int(row["damage"] or 0) > 0:
            checker.wrong.append(f"{name}: {row['reason']} did {row['damage']} damage to {row['target']}")
        if row["view_error_units"] and (row["impact"] == "1" or row["reason"] == "launched"):
            checker.wrong.append(f"{name}: a projectile has a view error of {row['view_error_units']}")
        if row["rewind_us"] and int(row["rewind_us"]) < 0:
            checker.wrong.append(f"{name}: rewound by {row['rewind_us']} us")


def server_frames(tables: Path, entities: set[str]) -> dict[int, dict[int, tuple[float, float, float]]]:
    """The positions of these entities after each tick. Keys: the tick's time in us, then the entity."""
    times = {tick: int(at) for tick, at in stream_rows(tables / "ticks.csv", ["tick", "at_us"])}
    found: dict[int, dict[int, tuple[float, float, float]]] = collections.defaultdict(dict)
    for tick, entity, x, y, z in stream_rows(tables / "bodies.csv", ["tick", "entity", "origin.x", "origin.y", "origin.z"]):
        if tick in times and entity in entities:
            found[times[tick]][int(entity)] = (float(x), float(y), float(z))
    return found


def judged_place(
    frames: dict[int, dict[int, tuple[float, float, float]]], sent: list[int], at: int, entity: int
) -> tuple[float, float, float] | None:
    """The position at which a lag-compensating server judges an entity: between the two frames around a time.

    Frames are those that the server sent to the shooter before it ran the shot.
    """
    before = max((time for time in sent if time <= at), default=None)
    after = min((time for time in sent if time > at), default=None)
    if before is None or after is None:
        return None
    a, b = frames.get(before, {}).get(entity), frames.get(after, {}).get(entity)
    if a is None or b is None:
        return None
    share = (at - before) / (after - before)
    return tuple(x + (y - x) * share for x, y in zip(a, b))  # type: ignore[return-value]


def check_view_errors(tables: Path, checker: Checker, info: dict[str, Any]) -> int:
    """The view error of each rewound hit, from where the screen had the target and where the server's frames had it.

    The target of a hit is who was hit. Hits across a teleport, a respawn or the ends of the history are left out.
    Returns how many hits were recomputed.
    """
    hits = [row for row in read_rows(tables / "shots.csv") if is_rewound_hit(row)]
    if not hits:
        return 0
    frames = server_frames(tables, {row["target"].removeprefix("p") for row in hits})
    wanted = {(row["shooter"], row["command"], row["target"].removeprefix("p")) for row in hits}
    columns = ["player", "command", "entity", "how", "origin.x", "origin.y", "origin.z"]
    drawn = {key: row[3:] for row in stream_rows(tables / "views.csv", columns) if (key := tuple(row[:3])) in wanted}
    sent: dict[str, list[int]] = collections.defaultdict(list)
    for player, at in stream_rows(tables / "snapshots.csv", ["player", "at_us"]):
        sent[player].append(int(at))
    recomputed = 0
    for row in hits:
        view = drawn.get((row["shooter"], row["command"], row["target"].removeprefix("p")))
        known = [time for time in sent[row["shooter"]] if time < int(row["at_us"])][-64:]
        place = judged_place(frames, known, int(row["at_us"]) - int(row["rewind_us"]), int(row["target"].removeprefix("p")))
        if view is None or view[0] != "interpolated" or place is None or row["view_error_units"] == "":
            continue
        screen = tuple(float(coordinate) for coordinate in view[1:])
        error = math.dist(screen, place)
        recomputed += 1
        if abs(error - float(row["view_error_units"])) > TOLERANCE:
            name = f"p{row['shooter']}#{row['command']}"
            checker.wrong.append(f"{name} hit {row['target']}: view error hitreg {row['view_error_units']}, oracle {error:.4f}")
    return recomputed


def is_rewound_hit(row: Row) -> bool:
    """Whether a lag-compensated shot hit a player."""
    is_player = row["target"].startswith("p") and row["target"][1:].isdigit()
    return row["reason"] == "hit" and row["impact"] == "0" and row["rewind_us"] not in ("", "0") and is_player


def check_corrections(rows: list[Row], told: dict[str, Any], corrections: int | None, ran: bool, checker: Checker) -> None:
    """Predictions by result, misses by cause, and corrections. A miss is a result that is neither exact nor near."""
    judged = [row for row in rows if row["result"] != "none"]
    by_result = collections.Counter(row["result"] for row in judged)
    misses = [row for row in judged if row["result"] not in ("exact", "near")]
    causes = collections.Counter(row["cause"] for row in misses)
    checker.equal("prediction.checked", told["checked"], len(judged))
    checker.equal("prediction.exact", told["exact"], by_result["exact"])
    checker.equal("prediction.near", told["near"], by_result["near"])
    # Without any compared ack, their number is known only if the clients and the server ran.
    known = sum(row["cause"] != "none" for row in rows) if rows or ran else None
    checker.equal("corrections", corrections, known)
    checker.equal("prediction.misses_by_cause", told["misses_by_cause"], dict(sorted(causes.items())))
    checker.equal("prediction.usercmds", told["usercmds"], sum(int(row["commands"]) for row in rows))
    for where, flag in (("ground", "1"), ("air", "0")):
        here = [row for row in judged if row["on_ground"] == flag]
        checker.equal(f"prediction.{where}.checked", told[where]["checked"], len(here))
        checker.equal(f"prediction.{where}.exact", told[where]["exact"], sum(row["result"] == "exact" for row in here))
    errors = [row for row in rows if row["cause"] not in ("spawn_or_death", "teleport")]
    checker.close("prediction.error_units", told["error_units"], spread(numbers(errors, "error_units")))


def check_network(tables: Path, told: dict[str, Any], info: dict[str, Any] | None, checker: Checker) -> None:
    """Packets of both directions.

    A packet that never arrived is lost when a later packet of its player and direction arrived. A packet after the last
    that arrived is in flight at the end, and is neither lost nor arrived.
    """
    for way, name, recorded in (("up", "packets", "packets_up"), ("down", "snapshots", "packets")):
        rows = read_rows(tables / f"{name}.csv")
        arrived = [row for row in rows if row["arrived"] != "0"]
        # A player's arrivals are known if one of them is in the table, or if the log has the client's own packets.
        with_own_packets = {row["player"] for row in read_rows(tables / "packets.csv")} if arrived else set()
        known = {row["player"] for row in arrived} | with_own_packets
        unknown = {row["player"] for row in rows} - known
        if way == "up":
            # A client's log is missing if no snapshot arrived at its player, and the player has no packets.
            down = read_rows(tables / "snapshots.csv")
            players = {row["player"] for row in down} - {row["player"] for row in down if row["arrived"] != "0"}
            unknown |= players - {row["player"] for row in rows}
        checker.equal(f"network.{way}.players_unknown", told[way]["players_unknown"], len(unknown))
        if unknown and not rows:
            checker.equal(f"network.{way}.sent", told[way]["sent"], None)
            continue
        rows = [row for row in rows if row["player"] in known] if arrived else rows
        checker.equal(f"network.{way}.sent", told[way]["sent"], len(rows))
        checker.close(f"network.{way}.took_ms", told[way]["took_ms"], spread(numbers(arrived, "took_ms")))
        if told[way]["lost"] is None or not arrived:
            continue
        last = {row["player"]: index for index, row in enumerate(rows) if row["arrived"] != "0"}
        missing = [(index, row) for index, row in enumerate(rows) if row["arrived"] == "0"]
        lost = sum(index < last.get(row["player"], -1) for index, row in missing)
        checker.equal(f"network.{way}.lost", told[way]["lost"], lost)
        if info and (info.get(recorded) or {}).get("lost") is not None and info[recorded].get("sent") == len(rows):
            checker.equal(f"network.{way}.lost, info", info[recorded]["lost"], lost)
    snapshots = read_rows(tables / "snapshots.csv")
    if snapshots and "choked" in snapshots[0]:
        checker.equal("network.choked", told["choked"], sum(int(row["choked"] or 0) for row in snapshots))
        checker.equal("network.warnings", told["warnings"], sum(int(row["warnings"] or 0) for row in snapshots))


def check_drawn(path: Path, told: list[dict[str, Any]], checker: Checker) -> None:
    """Views by drawing mode. If entities have categories: by category, without the player's own body."""
    with path.open(newline="") as file:
        by_category = "category" in next(csv.reader(file), [])
    counted = collections.Counter(how for (how,) in stream_rows(path, ["category" if by_category else "how"]))
    if by_category:
        del counted["controlled"]
    checker.equal("drawn", {part["by"]: part["views"] for part in told}, dict(sorted(counted.items())))


def check(tables: Path, replay: dict[str, Any], info: dict[str, Any] | None = None) -> list[str]:
    """Compares a replay's answer with its exported tables. Returns the disagreements."""
    checker = Checker()
    shots = read_rows(tables / "shots.csv")
    exercised = replay["exercised"]
    if (tables / "shots.csv").exists() and replay.get("shots"):
        check_shots(shots, replay["shots"], checker)
        check_shot_rows(shots, checker)
        check_view_errors(tables, checker, info or {})
        hits = sum(row["reason"] == "hit" for row in without_reported(shots))
        checker.equal("exercised.hits", exercised["hits"], None if replay["shots"]["fired"] is None else hits)
    if (tables / "corrections.csv").exists() and replay.get("prediction"):
        acks = read_rows(tables / "corrections.csv")
        ran = all((tables / name).exists() and read_rows(tables / name) for name in ("frames.csv", "ticks.csv"))
        check_corrections(acks, replay["prediction"], exercised["corrections"], ran, checker)
    if (tables / "ticks.csv").exists():
        checker.equal("exercised.ticks", exercised["ticks"], count_rows(tables / "ticks.csv"))
    if (tables / "frames.csv").exists():
        # Without a client's frames, as in a server's own log, the usercmds that were due on the server count.
        usercmds = count_rows(tables / "frames.csv") or count_rows(tables / "executed.csv")
        checker.equal("exercised.usercmds", exercised["usercmds"], usercmds)
    if replay.get("network") and (tables / "packets.csv").exists():
        check_network(tables, replay["network"], info, checker)
    if replay.get("drawn") and (tables / "views.csv").exists():
        check_drawn(tables / "views.csv", replay["drawn"], checker)
    return checker.wrong


def main() -> int:
    """Checks one folder of tables."""
    if len(sys.argv) not in (3, 4):
        print(__doc__)
        return 128
    replay = json.loads(Path(sys.argv[2]).read_text())
    info = json.loads(Path(sys.argv[3]).read_text()) if len(sys.argv) == 4 else None
    wrong = check(Path(sys.argv[1]), replay, info)
    print("\n".join(wrong) if wrong else "same")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
