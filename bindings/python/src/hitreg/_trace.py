"""Reads traces: "Rows" and "Packed views" in docs/format.md."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Union

import numpy as np

from ._column import DTYPE, Budget, Counts, Values, typed, unpack
from ._container import Chunk, HitregError
from ._file import File
from ._log import ranges
from ._schema import TraceHeader
from ._table import Table, column

MAX_COLUMNS = 4096
MAX_SERIES = 16
BETWEEN = "interpolated"
# Columns of packed views, in the order of their packed values.
PLACES = ("origin.x", "origin.y", "origin.z", "pitch", "yaw")
# The memory of one packed view besides its columns, in 8-byte values.
DRAWN_WIDTH = 18


def grouped(keys: list[Values], rows: int) -> tuple[Values, Counts]:
    """Returns the row at each place when rows are grouped by these keys, and the rows of each group."""
    if not keys or not rows:
        return np.arange(rows), np.array([rows], np.int64)
    order = np.lexsort(keys[::-1])
    starts = np.ones(rows, bool)
    starts[1:] = np.any([key[order][1:] != key[order][:-1] for key in keys], axis=0)
    return order, np.diff(np.append(np.flatnonzero(starts), rows))


def scattered(order: Values, values: Values) -> Values:
    """Returns grouped values in the order of the rows."""
    out = np.empty_like(values)
    out[order] = values
    return out


def decode(content: dict[str, Any]) -> Table:
    """Decodes the rows of a chunk."""
    rows, maps, series = content["rows"], content["columns"], content.get("series", [])
    if len(maps) > MAX_COLUMNS or len(series) > MAX_SERIES:
        raise HitregError(f"it has {len(maps)} columns and {len(series)} series")
    drawn = content.get("drawn")
    Budget().counts([rows], len(maps) + len(series) + 3 + (DRAWN_WIDTH if drawn else 0))
    by_name = {map["name"]: map for map in maps}
    key = content.get("key", [])
    if len(by_name) < len(maps) or not {*key, *series} <= {*by_name}:
        raise HitregError("two of its columns have one name, or its key or series is no column")
    alone = grouped([], rows)
    keys = {name: _values(by_name[name], *alone) for name in series}
    groups = grouped([*keys.values()], rows)
    how = by_name.get("how", {}).get("names", [])
    views = _views(drawn, rows, how) if drawn else {}
    columns = {}
    for name, map in by_name.items():
        if map.get("transform", "raw") == "drawn":
            values = views[name]
        else:
            values = keys[name] if name in keys else _values(map, *groups)
        names = map.get("names", []) if map["type"] == "name" else map.get("names") or None
        columns[name] = column(map["type"], values, map.get("unit", ""), names)
    return Table(str(content["table"]), columns, rows, key)


def _values(map: dict[str, Any], order: Values, counts: Counts) -> Values:
    try:
        kind, transform = "u32" if map["type"] == "name" else map["type"], map.get("transform", "raw")
        if kind not in ("u32", "u64", "i64", "f32", "f64", "bool"):
            raise HitregError(f"it has the type {kind!r}")
        if transform == "packed":
            return scattered(order, typed(unpack(map["data"], counts), kind))
        if transform not in ("raw", "runs"):
            raise HitregError(f"it has the transform {transform!r}")
        stored = np.dtype("u1") if map["type"] in ("name", "bool") else DTYPE[kind].newbyteorder("<")
        if transform == "runs":
            of_run = np.dtype([("length", "<u4"), ("value", stored)])
            whole = len(map["data"]) // of_run.itemsize
            runs = np.frombuffer(map["data"], of_run, whole)
            if whole * of_run.itemsize < len(map["data"]) or runs["length"].sum(dtype=np.uint64) != len(order):
                raise HitregError(f"its runs do not have {len(order)} rows")
            values = np.repeat(runs["value"], runs["length"])
        elif len(map["data"]) == len(order) * stored.itemsize:
            values = np.frombuffer(map["data"], stored)
        else:
            raise HitregError(f"it has {len(map['data'])} bytes for {len(order)} rows of {stored.itemsize}")
        return typed(values.astype(np.int64), kind) if stored == np.uint8 else values.astype(DTYPE[kind])
    except HitregError as error:
        raise HitregError(f"column {map['name']!r}: {error}") from None


def _views(drawn: dict[str, Any], rows: int, how: list[str]) -> dict[str, Values]:
    """Returns the ten columns of packed views."""
    frames, lists, moments, entities, others = (
        int(drawn[name]) for name in ("frames", "lists", "moments", "entities", "others")
    )
    if (
        min(frames, lists, moments, entities, others) < 0
        or max(frames, lists, others, moments / 2, entities / 2) > rows
    ):
        raise HitregError(f"its packed views have more parts than its {rows} rows can use")
    packed = list(drawn["packed"])[::-1]

    def numbers(counts: Any, kind: str = "u32") -> Values:
        return typed(unpack(packed.pop(), np.asarray(counts, np.int64).reshape(-1)), kind).astype(np.int64)

    def places(counts: Any) -> list[Values]:
        return [typed(unpack(packed.pop(), np.asarray(counts, np.int64).reshape(-1)), "f32") for _ in PLACES]

    players = numbers(frames)
    order, series = grouped([players], frames)
    command, at = scattered(order, numbers(series)), scattered(order, numbers(series, "i64"))
    list_of, first, ahead = (scattered(order, numbers(series)) for _ in range(3))
    lengths = numbers(lists)
    if lengths.sum() > rows:
        raise HitregError(f"its lists name {lengths.sum()} entities for {rows} rows")
    listed, times, of_states = numbers(lengths.sum()), numbers(moments, "i64"), numbers(entities)
    sizes = numbers(entities)
    if (np.diff(of_states) <= 0).any() or sizes.sum() > 2 * rows:
        raise HitregError("its states are not in order, or too many")
    moment_of = numbers(sizes)
    state = places(sizes)
    gaps, codes, given = numbers(others), numbers(others), places(others)
    if frames and (list_of.max() >= lists or lengths[list_of].sum() != rows):
        raise HitregError(f"its frames do not draw {rows} rows")
    frame = np.repeat(np.arange(frames), lengths[list_of] if frames else 0)
    entity = listed[ranges((np.cumsum(lengths) - lengths)[list_of], lengths[list_of])] if frames else listed
    other_rows = np.cumsum(gaps + 1) - 1
    if others and other_rows[-1] >= rows:
        raise HitregError("its rows end before the last other row")
    out = {name: np.zeros(rows, np.float32) for name in PLACES}
    ways = np.full(rows, how.index(BETWEEN) if BETWEEN in how else len(how))
    ways[other_rows] = codes
    between = np.ones(rows, bool)
    between[other_rows] = False
    # The states in the order of entity and moment, each found by both.
    known = (np.repeat(of_states, sizes) << 32) + moment_of
    by_key = np.argsort(known, kind="stable")
    known = known[by_key]

    def state_at(moment: Values) -> Values:
        wanted = (entity[between] << 32) + moment[frame[between]]
        found = np.searchsorted(known, wanted)
        if wanted.size and (not known.size or (known[np.minimum(found, len(known) - 1)] != wanted).any()):
            raise HitregError("a row is drawn between states that are not there")
        return by_key[found]

    a, b = state_at(first), state_at(first + ahead)
    if between.any() and max(first[frame[between]].max(), (first + ahead)[frame[between]].max()) >= moments:
        raise HitregError("a row is drawn between moments that are not there")
    start, end = times[first[frame[between]]], times[(first + ahead)[frame[between]]]
    with np.errstate(all="ignore"):
        share = (at[frame[between]] - start).astype(np.float32) / (end - start).astype(np.float32)
        share = np.clip(share, np.float32(0), np.float32(1))
        for name, values, rest in zip(PLACES, state, given):
            by = values[b] - values[a]
            if name in ("pitch", "yaw"):
                turns = by / np.float32(360)
                whole_turns = np.trunc(turns)
                whole_turns += np.where(
                    np.abs(turns - whole_turns) >= 0.5, np.copysign(np.float32(1), turns), np.float32(0)
                )
                by = np.where(np.abs(by) < 180, by, by - np.float32(360) * whole_turns)
            drawn_at = np.where(share >= 1, values[b], np.where(share <= 0, values[a], values[a] + by * share))
            out[name][between] = drawn_at
            out[name][other_rows] = rest
    owners = {"player": players, "command": command, "drawn_at_us": at}
    kinds = {"drawn_at_us": "i64"}
    keys = {name: typed(values[frame], kinds.get(name, "u32")) for name, values in owners.items()}
    return {**keys, "entity": typed(entity, "u32"), **out, "how": ways}


class Trace(File):
    """The result of a replay. `trace["shots"]` is a table; docs/tables.md lists hitreg's tables and columns."""

    _magic = "hittrace"

    def __init__(self, path: Union[str, os.PathLike[str]]) -> None:
        super().__init__(path)
        try:
            self.header = TraceHeader.read(self._container.header)
        except HitregError as error:
            raise HitregError(f"{self.path}: {error}") from None

    def _names_of(self, chunk: Chunk) -> Iterable[str]:
        return [str(chunk.content["table"])]

    def _decode(self, chunk: Chunk, name: str) -> Table:
        return decode(chunk.content)


def open_trace(path: Union[str, os.PathLike[str]]) -> Trace:
    """Opens a trace (`*.hittrace`) and reads its header."""
    return Trace(path)
