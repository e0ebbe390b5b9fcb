"""Reads logs: "Records" in docs/format.md."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import accumulate
from typing import Any, Optional, Union

import numpy as np

from ._column import Budget, Counts, Values, typed, unpack
from ._container import Chunk, HitregError
from ._file import File
from ._schema import (
    HEARD_LIST,
    KINDS,
    LIST_COLUMNS,
    SESSION_KINDS,
    SNAPSHOT_LISTS,
    Field,
    KindColumn,
    LogHeader,
)
from ._table import Column, Table, column

# The value of `helper` for 0 ms.
HELPER_ZERO = 32_769
HEARD_MAX = 32
NO_ROWS: Any = ((), (), ())


@contextmanager
def naming(kind: str, name: str) -> Iterator[None]:
    """Adds the table and the column to errors."""
    try:
        yield
    except HitregError as error:
        raise HitregError(f"table {kind}, column {name}: {error}") from None


class Packed:
    """A table of a chunk: series, rows of each, and packed columns by name."""

    def __init__(self, kind: str, table: Any, names: list[str], budget: Budget) -> None:
        ids, rows, columns = table
        if len(ids) < len(rows):
            rows = rows[: len(ids)]
        self.kind = kind
        self.ids = np.array(ids[: len(rows)], np.int64)
        self.counts = budget.counts(rows, len(names) + 3)
        self.rows = int(self.counts.sum())
        self._columns: dict[str, bytes] = dict(zip(names, columns))

    @property
    def series(self) -> Values:
        """The series of each row."""
        return np.repeat(self.ids, self.counts)

    def raw(self, name: str) -> bytes:
        # Columns missing at the end hold zeros.
        return self._columns.get(name, b"")

    def values(self, name: str, counts: Optional[Counts] = None, references: Optional[Values] = None) -> Values:
        with naming(self.kind, name):
            return unpack(self.raw(name), self.counts if counts is None else counts, references)

    def typed(self, name: str, kind: str, counts: Optional[Counts] = None) -> Values:
        with naming(self.kind, name):
            return typed(self.values(name, counts), kind)


def ranges(starts: Values, lengths: Values) -> Values:
    """Returns the numbers from each start on, so many of each, one range after the other."""
    ends = np.cumsum(lengths)
    offsets: Values = np.repeat(starts - ends + lengths, lengths)
    return offsets + np.arange(len(offsets))


class LogChunk:
    """The records of one chunk."""

    def __init__(self, header: LogHeader, content: dict[str, Any]) -> None:
        self.header, self.content = header, content
        self.texts = ["", *content.get("texts", [])]
        self._budget = Budget()
        self._tables: dict[str, tuple[Packed, dict[str, Column]]] = {}

    def names(self) -> Iterable[str]:
        for kind in self.header.kinds:
            if kind in self.content:
                yield kind
                if kind == "snapshots":
                    yield from (f"snapshots.{name}" for name in SNAPSHOT_LISTS)
                if kind == "heard":
                    yield "heard.usercmds"
        yield from (name for name in map(states_name, range(len(self.header.classes))) if name in self.content)

    def table(self, name: str) -> Table:
        kind, _, part = name.partition(".")
        # A custom kind may have the name of a list.
        is_custom = name in self.header.columns
        if kind == "states":
            return self._states(name, int(part or 0))
        if kind == "snapshots" and not is_custom:
            return self._snapshots(part)
        if name == "heard.usercmds" and not is_custom:
            return self._heard_usercmds()
        packed, columns = self._kind(name)
        if name == "frames" and self.header.usercmd_bytes:
            shown = {key: of for key, of in columns.items() if key != "extra_bytes"}
            columns = {**shown, free_name("bytes", "usercmd", shown): self._extra(packed, columns)}
        return Table(name, columns, packed.rows, ["series"] if name not in KINDS else [])

    def _extra(self, packed: Packed, columns: dict[str, Column]) -> Column:
        """The bytes that a game adds to each row."""
        extra, sizes = packed.raw("extra"), columns["extra_bytes"].values.tolist()
        if len(extra) != sum(sizes):
            raise HitregError(f"table {packed.kind}, column extra: it has another length than its rows say")
        bytes_of = np.empty(packed.rows, object)
        bytes_of[:] = [extra[end - size : end] for end, size in zip(accumulate(sizes), sizes)]
        return Column("bytes", bytes_of)

    def _column(self, packed: Packed, name: str, field: Optional[Field], counts: Optional[Counts] = None) -> Column:
        """Decodes a column of a field, or one that no field declares."""
        kind, unit = (field.kind, field.unit) if field else ("", "")
        values = packed.values(name, counts)
        shown = {"i": "i64", "f": "f32" if values.itemsize == 4 else "f64"}[values.dtype.kind]
        # A custom kind may declare a type that its numbers do not have.
        is_custom = packed.kind in self.header.columns
        if not kind or is_custom and values.any() and "f" in (kind[0], shown[0]):
            kind = shown
        with naming(packed.kind, name):
            if kind == "text":
                return column("text", typed(values, "i64"), unit, self.texts)
            return Column(kind, typed(values, kind), unit)

    def _known(self, packed: Packed, of: KindColumn, prefix: str, sofar: dict[str, Column], counts: Counts) -> Column:
        """Decodes a column of a known kind."""
        name, references = prefix + of.name, None
        if of.relative:
            references = sofar[of.relative].values.astype(np.int64)
            if of.base:
                references = self._named(packed, of.base, references)
        values = packed.values(name, counts, references)
        if of.optional:
            values = values - 1
        with naming(packed.kind, name):
            if of.kind == "text":
                return column("text", typed(values, "i64"), names=self.texts)
            return column(of.kind, typed(values, of.kind), of.unit, of.names or None)

    def _kind(self, kind: str) -> tuple[Packed, dict[str, Column]]:
        """Decodes the columns of a kind that have one number for each row."""
        if kind in self._tables:
            return self._tables[kind]
        names = self.header.kinds.get(kind, [])
        packed = Packed(kind, self.content.get(kind, NO_ROWS), names, self._budget)
        owner = "player" if kind in KINDS else "series"
        columns = {} if kind in SESSION_KINDS else {owner: Column("u32", typed(packed.series, "u32"))}
        if kind in KINDS and packed.ids.size and packed.ids.max() >= max(len(self.header.players), 1):
            raise HitregError(f"table {kind}: a record of player {packed.ids.max()}")
        for of in KINDS.get(kind, []):
            columns[of.name] = self._known(packed, of, "", columns, packed.counts)
        if kind == "ticks":
            columns["hash"] = Column("u64", self._hashes(packed, columns["hashed"].values), "hash")
            columns["hashed"] = Column("bool", columns["hash"].values != 0)  # a hash of 0 is none
        declared = self.header.usercmd if kind == "frames" else self.header.columns.get(kind, [])
        fields = {field.name: field for field in declared}
        for name in names:
            is_list = name in LIST_COLUMNS.get(kind, ()) or kind == "heard" and name.startswith("usercmd_")
            is_list = is_list or kind == "frames" and name == "extra" and self.header.usercmd_bytes
            if name not in columns and not is_list:
                columns[name] = self._column(packed, name, fields.get(name))
                if name == "at_us":
                    columns[name].unit = "µs"
        self._tables[kind] = packed, columns
        return packed, columns

    def _hashes(self, packed: Packed, hashed: Values) -> Values:
        values = np.frombuffer(packed.raw("hash"), "<u8")
        if len(values) < hashed.sum():
            raise HitregError("table ticks, column hash: it ends too early")
        hashes = np.zeros(packed.rows, np.uint64)
        hashes[hashed] = values[: int(hashed.sum())]
        return hashes

    def _named(self, packed: Packed, base: str, keys: Values) -> Values:
        """Returns the time of the record of `base` that each row names: the first with its key and player. A row
        without one has the reference of the row before, and 0 at the start of a player's rows."""
        of, columns = self._kind(base)
        key_name = KINDS[base][0].name
        series = of.series
        order = np.lexsort((columns[key_name].values, series))
        # Series and keys have 32 bits each.
        known = (series[order] << 32) + columns[key_name].values[order]
        wanted = (packed.series << 32) + keys
        places = np.searchsorted(known, wanted)
        found = np.zeros(len(wanted), bool)
        found[places < len(known)] = known[places[places < len(known)]] == wanted[places < len(known)]
        rows = np.arange(packed.rows)
        last = np.maximum.accumulate(np.where(found, rows, -1))
        starts = np.repeat(np.cumsum(packed.counts) - packed.counts, packed.counts)
        times = np.concatenate((columns["at_us"].values[order], [0]))
        return np.where(last >= starts, times[np.where(last >= 0, places[last], -1)], 0)

    def _state_rows(self, place: int) -> tuple[Packed, Values]:
        """The table of a class's states, and the tick of each row."""
        name, fields = states_name(place), self.header.classes[place].fields
        names = [str(index) for index in range(-1, len(fields))]
        packed = Packed(name, self.content.get(name, NO_ROWS), names, self._budget)
        viewers = len(self.header.players)
        if packed.ids.size and (packed.ids.min() < 0 or (packed.ids.max() >> 16) > viewers):
            raise HitregError(f"table {name}: a state for player {(packed.ids.max() >> 16) - 1}")
        return packed, packed.typed("-1", "u32")

    def _states(self, name: str, place: int) -> Table:
        packed, ticks = self._state_rows(place)
        of, series = self.header.classes[place], packed.series
        columns = {
            "tick": Column("u32", ticks),
            "viewer": Column("i32", ((series >> 16) - 1).astype(np.int32)),
            "entity": Column("u32", (series & 0xFFFF).astype(np.uint32)),
        }
        for index, field in enumerate(of.fields):
            title = free_name(field.name, of.name, columns)
            columns[title] = self._column(packed, str(index), field)
        return Table(name, columns, packed.rows, ["tick", "viewer", "entity"])

    def _snapshots(self, part: str) -> Table:
        packed, columns = self._kind("snapshots")
        if part == "entities":
            return self._list(part, columns, *self._shown())
        if part:
            counts = columns[part].values.astype(np.int64)
            flat = self._budget.counts([counts.sum()], 8)
            lists = {
                of.name.partition("_")[2]: Column(of.kind, packed.typed(of.name, of.kind, flat), of.unit)
                for of in SNAPSHOT_LISTS[part]
            }
            return self._list(part, columns, counts, lists)
        helper = columns["helper"].values.astype(np.float32)
        shown = {name: of for name, of in columns.items() if name not in ("helper", "extra_bytes")}
        shown["entities"] = Column("u32", self._shown()[0].astype(np.uint32))
        shown["helper_ms"] = Column("f32", np.where(helper == 0, np.float32("nan"), helper - HELPER_ZERO), "ms")
        shown["extra"] = self._extra(packed, columns)
        return Table("snapshots", shown, packed.rows)

    def _list(self, part: str, columns: dict[str, Column], counts: Values, lists: dict[str, Column]) -> Table:
        owners = {name: Column("u32", np.repeat(columns[name].values, counts)) for name in ("player", "seq")}
        return Table(f"snapshots.{part}", {**owners, **lists}, int(counts.sum()))

    def _shown(self) -> tuple[Values, dict[str, Column]]:
        """The number of entities that each snapshot shows, and the entities."""
        packed, columns = self._kind("snapshots")
        listed = columns["entities"].values.astype(np.int64)
        lengths = np.maximum(listed - 1, 0)
        entities = packed.typed("entity", "u32", self._budget.counts([lengths.sum()], 2)).astype(np.int64)
        # Snapshots without a list show what has states at their tick, for everyone or for their player.
        pairs = [self._state_rows(place) for place in range(len(self.header.classes))]
        series = np.concatenate([packed.series for packed, _ in pairs] or [np.zeros(0, np.int64)])
        ticks = np.concatenate([ticks.astype(np.int64) for _, ticks in pairs] or [np.zeros(0, np.int64)])
        # Tick, viewer plus one, entity.
        states = np.unique((ticks << 24) + series)
        tick, player = columns["tick"].values.astype(np.int64), columns["player"].values.astype(np.int64)
        shared = np.searchsorted(states, [tick << 24, (tick << 24) + (1 << 16)])
        viewer = (tick << 24) + ((player + 1) << 16)
        own = np.searchsorted(states, [viewer, viewer + (1 << 16)])
        starts, pool = len(entities) + shared[0], [entities, states & 0xFFFF]
        starts[listed > 0] = (np.cumsum(lengths) - lengths)[listed > 0]
        lengths = np.where(listed > 0, lengths, shared[1] - shared[0])
        end = len(entities) + len(states)
        for row in np.flatnonzero((listed == 0) & (own[1] > own[0])):
            both = np.union1d(*(states[of[0][row] : of[1][row]] & 0xFFFF for of in (shared, own)))
            pool.append(both)
            starts[row], lengths[row], end = end, len(both), end + len(both)
        self._budget.counts([lengths.sum()], 1)
        return lengths, {"entity": Column("u32", np.concatenate(pool)[ranges(starts, lengths)].astype(np.uint32))}

    def _heard_usercmds(self) -> Table:
        """The usercmds of heard packets, repeats included."""
        packed, columns = self._kind("heard")
        players, newest, counts = (columns[name].values.astype(np.int64) for name in ("player", "newest", "usercmds"))
        masks = packed.typed("fresh", "u32").tolist()
        if any(count > HEARD_MAX or mask >> count for mask, count in zip(masks, counts.tolist())):
            raise HitregError("table heard, column fresh: it has more bits than usercmds")
        if counts.size and (newest + 1 - counts).min() < 0:
            raise HitregError("table heard, column newest: it has more usercmds than numbers")
        width = len(self.header.usercmd) // 2 + 3
        self._budget.counts([counts.sum(), sum(bin(mask).count("1") for mask in masks)], width)
        sources: list[int] = []
        series, known, fresh = dict.fromkeys(players.tolist(), 0), dict[int, int](), 0
        for player, last, count, mask in zip(players.tolist(), newest.tolist(), counts.tolist(), masks):
            # A player's first packets hold all their usercmds.
            known = known if series[player] else {}
            for bit in range(count):
                seq = last + 1 - count + bit
                if mask >> bit & 1:
                    known[seq] = fresh
                    series[player] += 1
                    fresh += 1
                if seq not in known:
                    raise HitregError(f"table heard, column fresh: usercmd {seq} is missing")
                sources.append(known[seq])
        rows_of = np.array([*series.values()], np.int64)
        nested: dict[str, Column] = {}
        for of in HEARD_LIST:
            nested[of.name] = self._known(packed, of, "usercmd_", nested, rows_of)
        del nested["at_us"]
        for field in self.header.usercmd:
            if field.name not in nested:
                title = free_name(field.name, "usercmd", ("packet",))
                nested[title] = self._column(packed, f"usercmd_{field.name}", field, rows_of)
        places = np.array(sources, np.int64)
        usercmds = {name: replace(of, values=of.values[places]) for name, of in nested.items()}
        seqs = ranges(newest + 1 - counts, counts).astype(np.uint32)
        owners = {"player": players, "packet": columns["number"].values}
        first = {name: Column("u32", np.repeat(values, counts).astype(np.uint32)) for name, values in owners.items()}
        return Table("heard.usercmds", {**first, **usercmds, "seq": Column("u32", seqs)}, len(places))


def free_name(name: str, owner: str, taken: Collection[str]) -> str:
    """Returns the name of a column: the owner's name stands before one that another column has."""
    while name in taken:
        name = f"{owner}.{name}"
    return name


def states_name(place: int) -> str:
    return f"states.{place}" if place else "states"


class Log(File):
    """A recorded session.

    `log["frames"]` has the rows of a record kind. `states`, `states.1` and so on have the states of each class;
    `snapshots.entities`, `snapshots.effects`, `snapshots.warnings` and `heard.usercmds` have the items of lists.
    """

    _magic = "hitlog"

    def __init__(self, path: Union[str, os.PathLike[str]]) -> None:
        super().__init__(path)
        try:
            self.header = LogHeader.read(self._container.header)
        except HitregError as error:
            raise HitregError(f"{self.path}: {error}") from None

    def states(self, class_name: str) -> Table:
        """Returns the states of the entities of a class."""
        names = [of.name for of in self.header.classes]
        if class_name not in names:
            raise KeyError(f"{self.path} has no class {class_name!r}; it has {', '.join(names) or 'none'}")
        return self[states_name(names.index(class_name))]

    def _names_of(self, chunk: Chunk) -> Iterable[str]:
        return LogChunk(self.header, chunk.content).names()

    def _decode(self, chunk: Chunk, name: str) -> Table:
        return LogChunk(self.header, chunk.content).table(name)

    def _whole(self, name: str, parts: list[Table]) -> Table:
        table = super()._whole(name, parts)
        # A chunk continues each player's rows where the previous chunk ended. A client's log has snapshots in order of
        # arrival.
        kind, side = name.partition(".")[0], self.header.side
        order = ["player"] if "player" in table.columns and kind not in SESSION_KINDS else []
        if kind == "states":
            order = ["tick", "viewer", "entity"]
        elif kind == "snapshots" and side and side.player is not None:
            order = ["player", "seq"]
        elif kind not in KINDS and "at_us" in table.columns:
            order = ["at_us"]
        keys = [table.columns[key].values for key in reversed(order)]
        return table.take(np.lexsort(keys)) if keys else table

    def _empty(self, name: str) -> Optional[Table]:
        chunk = LogChunk(self.header, {})
        kinds = [*self.header.kinds, *map(states_name, range(len(self.header.classes)))]
        chunk.content = dict.fromkeys(kinds, NO_ROWS)
        return chunk.table(name) if name in chunk.names() else None


def open_log(path: Union[str, os.PathLike[str]]) -> Log:
    """Opens a log (`*.hitlog`) and reads its header."""
    return Log(path)
