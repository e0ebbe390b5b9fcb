"""Writes logs and traces: "Writing a log" and "Writing a trace" in docs/format.md."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Optional, Union

import numpy as np

from ._column import DTYPE, Values, exactly, pack, typed
from ._container import ChunkSink, Container, HitregError
from ._description import check_description, setting_text
from ._log import states_name
from ._schema import KINDS, MAX_TEXT_BYTES, SESSION_KINDS, TEXT_OVERHEAD, USERCMD, Field, KindColumn
from ._table import Column, Table, as_array, as_column, as_later_column

CHUNK_US = 1_000_000
CHUNK_CELLS = 1 << 20
TRACE_CHUNK_BYTES = 1 << 20
# Columns that only lists need, and counts of list items. A snapshot without a list shows all states of its tick.
LISTS = ("entities", "effects", "extra_bytes", "helper", "warnings")
# The ranges of integers, and the most that a column holds whose range is smaller than its type.
RANGES = {"bool": (0, 1), "u32": (0, 2**32 - 1), "i32": (-(2**31), 2**31 - 1), "u64": (0, 2**64 - 1)}
RANGES["i64"] = (-(2**63), 2**63 - 1)
MOST = {
    **dict.fromkeys(("msec", "impulse", "count", "shot", "hitgroup", "pellets", "choked"), 2**8 - 1),
    **dict.fromkeys(("lerp_ms", "buttons", "bytes", "target", "victim", "attacker", "armour"), 2**16 - 1),
}
Columns = Mapping[str, Any]


class _Writer:
    """A file under another name until it is complete. It replaces no other file, except one of its kind if it may."""

    def __init__(
        self, path: Union[str, os.PathLike[str]], magic: str, header: dict[str, Any], may_replace: bool
    ) -> None:
        self.path, self._magic, self._may_replace = os.fspath(path), magic, may_replace
        self._check_existing()
        part = f"{self.path}.part"
        try:
            self._out = open(part, "xb")
        except FileExistsError:
            rest = f"Run: hitreg recover {shlex.quote(part)}; if it was recovered already, delete it"
            rest = rest if magic == "hitlog" else "delete it, or name another file"
            raise HitregError(f"{part}: an unfinished recording has this name. {rest}") from None
        try:
            self._sink = ChunkSink(self._out, magic, header)
        except BaseException:
            self.discard()
            raise

    def _check_existing(self) -> None:
        """Refuses to replace a file of another kind, and one of the same kind unless that is allowed."""
        if not os.path.exists(self.path) or os.path.getsize(self.path) == 0:
            return
        kind = self._magic.replace("hit", "")
        try:
            Container(self.path, self._magic)
        except HitregError:
            advice = "not overwritten: name another file, or move this one"
            raise HitregError(f"{self.path}: exists and is not a hitreg {kind}; {advice}") from None
        if not self._may_replace:
            raise HitregError(f"{self.path}: this {kind} exists already: name another file, or pass force=True")

    def flush(self) -> None:
        """Writes the rows so far."""

    def close(self) -> None:
        """Ends the file and gives it its name. If another file has taken the name, both files stay where they are."""
        if self._out.closed:
            return
        self.flush()
        self._sink.finish()
        self._out.close()
        self._check_existing()
        os.replace(self._out.name, self.path)

    def discard(self) -> None:
        """Deletes what was written."""
        self._out.close()
        os.remove(self._out.name)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Any, trace: Optional[TracebackType]) -> None:
        if error is None:
            self.close()
        elif not self._out.closed:
            self.discard()


class LogWriter(_Writer):
    """Writes a log in columns. Each row needs its time: `at_us`, or `tick` for `executed` and states.

    Rows of a table are in the order of time. `flush` writes the rows so far; later calls add later rows.
    `force` replaces a finished log. Unfinished recordings and other files are never replaced.
    """

    def __init__(
        self,
        path: Union[str, os.PathLike[str]],
        *,
        game: str,
        players: Sequence[str],
        settings: Mapping[str, object] = {},
        classes: Mapping[str, Sequence[Field]] = {},
        usercmd_fields: Sequence[Field] = (),
        kinds: Mapping[str, Sequence[Field]] = {},
        map: str = "",
        seed: int = 0,
        rules: bytes = b"",
        force: bool = False,
    ) -> None:
        check_description(game, players, settings, classes, usercmd_fields, kinds, map, seed, rules)
        self._players, self._classes = len(players), list(classes)
        # For each table: its columns in the order of the file, and the columns that identify the series.
        self._columns: dict[str, list[Union[KindColumn, Field]]] = {}
        for kind, known in KINDS.items():
            if kind != "heard":
                self._columns[kind] = [of for of in known if of.name not in LISTS]
        self._columns["frames"] += usercmd_fields
        for kind, fields in kinds.items():
            self._columns[kind] = [KindColumn("at_us", "i64", "µs"), *fields]
        declared = {kind: [of.name for of in columns] for kind, columns in self._columns.items()}
        declared["ticks"].append("hash")
        for place, fields in enumerate(classes.values()):
            self._columns[states_name(place)] = [KindColumn("tick", "u32"), *fields]
        self._rows: dict[str, list[dict[str, Values]]] = {}
        self._ticks: list[tuple[Values, Values]] = []
        # The ticks that `flush` has written.
        self._flushed: dict[str, set[int]] = {"states": set(), "snapshots": set()}
        self._texts: set[str] = set()
        self._text_bytes = 0
        header = {
            "game": game,
            "rules": rules,
            "map": map,
            "seed": seed,
            "settings": [[key, setting_text(value)] for key, value in settings.items()],
            "preset": None,
            "players": [{"name": name, "recorded": True} for name in players],
            "origin": "live",
            "classes": [{"name": name, "fields": [of.map() for of in fields]} for name, fields in classes.items()],
            "usercmd": [of.map() for of in [*USERCMD, *usercmd_fields]],
            "kinds": list(declared.items()),
            "columns": [[kind, [of.map() for of in fields]] for kind, fields in kinds.items()],
        }
        super().__init__(path, "hitlog", header, force)

    def write(self, table: str, columns: Columns) -> None:
        """Adds rows. Values are arrays or lists of equal length, or one value for all rows; a missing column is 0.

        `player` is the player; `series` is the series of a custom kind. `target`, `attacker`, `pellets`, `armour` and
        the `player` of a gap are -1 for none, also if the column is missing. A `ticks` row without `hash` or
        with a `hash` of 0, and a `damage` row without `force_x`, `force_y` and `force_z`, have none.
        """
        schema = self._columns.get(table)
        if schema is None:
            raise HitregError(f"there is no table {table!r}; there are {', '.join(self._columns)}")
        kind = _kind_of(table)
        owners = {"entity": 0, "viewer": -1} if kind == "states" else {"player": 0}
        if table in SESSION_KINDS:
            owners = {}
        elif table not in KINDS and kind != "states":
            owners = {"series": 0}
        known = {of.name for of in schema} | {*owners} | ({"hash"} if table == "ticks" else set())
        if not {*columns} <= known:
            raise HitregError(f"table {table}: {', '.join({*columns} - known)} is none of {', '.join(sorted(known))}")
        time = "at_us" if "at_us" in known else "tick"
        if time not in columns:
            raise HitregError(f"table {table}: the column {time!r} is missing")
        rows = _rows_of(table, columns)
        try:
            wide = {
                name: _stored(KindColumn(name, "i64"), columns.get(name, least), rows)
                for name, least in owners.items()
            }
            stored = {of.name: _stored(of, columns.get(of.name, _least(of)), rows) for of in schema}
            if table == "damage" and {"force_x", "force_y", "force_z"} & {*columns}:
                stored["forced"] = _stored(BOOL, columns.get("forced", 1), rows)
            if table == "ticks" and "hash" in columns:
                stored["hash"] = _stored(KindColumn("hash", "u64"), columns["hash"], rows)
                stored["hashed"] = _stored(BOOL, columns.get("hashed", 1), rows) & (stored["hash"] != 0)
        except (HitregError, OverflowError, TypeError, ValueError) as error:
            raise HitregError(f"table {table}: {error}") from None
        series = wide.get("player", wide.get("series", wide.get("entity", np.zeros(rows, np.int64))))
        viewer = wide.get("viewer", np.full(rows, -1))
        limits = {"player": self._players, "series": 1 << 32, "entity": 1 << 16, "viewer": self._players}
        for name, values in wide.items():
            least, limit = -1 if name == "viewer" else 0, limits[name]
            if rows and not least <= values.min() <= values.max() < limit:
                wrong = values.min() if values.min() < least else values.max()
                raise HitregError(f"table {table}: a row has {name} {wrong}, which is not in {least} to {limit - 1}")
        self._add_texts(table, {text for of in schema if of.kind == "text" for text in stored[of.name].tolist()})
        if kind in self._flushed:
            other = "snapshots" if kind == "states" else "states"
            late = self._flushed[other].intersection(np.unique(stored["tick"]).tolist())
            if late:
                what = f"flush has written {other} of tick {min(late)}"
                raise HitregError(f"table {table}: {what}: write all states and snapshots of a tick before flush")
        stored[""] = series + ((viewer + 1) << 16)
        self._rows.setdefault(table, []).append(stored)
        if table == "ticks" and rows:
            self._ticks.append((stored["tick"], stored["at_us"]))

    def _add_texts(self, table: str, texts: set[str]) -> None:
        """Refuses texts of a table that readers would refuse."""
        new = texts - self._texts - {""}
        try:
            self._text_bytes += sum(len(text.encode()) + TEXT_OVERHEAD for text in new)
        except UnicodeEncodeError as error:
            raise HitregError(f"table {table}: {error}") from None
        if self._text_bytes > MAX_TEXT_BYTES:
            limit = f"{MAX_TEXT_BYTES >> 20} MiB, with {TEXT_OVERHEAD} more bytes for each"
            raise HitregError(f"table {table}: the different texts of a session take at most {limit}")
        self._texts |= new

    def write_states(self, class_name: str, columns: Columns) -> None:
        """Adds states of entities of a class: `tick`, `entity`, the fields, and `viewer` for one player's own state."""
        if class_name not in self._classes:
            raise HitregError(f"there is no class {class_name!r}; there are {', '.join(self._classes)}")
        self.write(states_name(self._classes.index(class_name)), columns)

    def flush(self) -> None:
        """Writes the rows so far, in chunks of about a second."""
        rows = {
            table: {name: np.concatenate([_filled(part, name) for part in parts]) for name in set().union(*parts)}
            for table, parts in self._rows.items()
        }
        self._rows = {}
        for table, columns in rows.items():
            if _kind_of(table) in self._flushed:
                self._flushed[_kind_of(table)].update(np.unique(columns["tick"]).tolist())
        times = {table: self._times(table, columns) for table, columns in rows.items()}
        every = np.concatenate([*times.values(), np.zeros(0, np.int64)])
        if not every.size:
            return
        first, span = int(every.min()), int(every.max()) - int(every.min()) + 1
        cells = sum(len(times[table]) * len(columns) for table, columns in rows.items())
        step = min(CHUNK_US, -(-span * CHUNK_CELLS // max(cells, CHUNK_CELLS)))
        pieces = np.unique((every - first) // step)
        split = {}
        for table, of in times.items():
            places = (of - first) // step
            order = np.argsort(places, kind="stable")
            split[table] = np.split(order, np.searchsorted(places[order], pieces[1:]))
        for piece in range(len(pieces)):
            texts: dict[str, int] = {}
            packed = {}
            for table, columns in rows.items():
                chosen = split[table][piece]
                if len(chosen):
                    packed[table] = self._packed(table, {name: of[chosen] for name, of in columns.items()}, texts)
            self._sink.chunk({"texts": list(texts), **packed})

    def _times(self, table: str, columns: dict[str, Values]) -> Values:
        """The times by which rows are split into chunks. A snapshot is in the chunk with the states of its tick, if any."""
        if "at_us" in columns and (table != "snapshots" or not self._flushed["states"]):
            return columns["at_us"]
        if not self._ticks:
            return np.zeros(len(columns["tick"]), np.int64)
        ticks, times = (np.concatenate(of) for of in zip(*self._ticks))
        of: Values = np.interp(columns["tick"], ticks, times).astype(np.int64)
        return of

    def _packed(self, table: str, columns: dict[str, Values], texts: dict[str, int]) -> list[Any]:
        order = np.argsort(columns[""], kind="stable")
        ids, counts = np.unique(columns[""], return_counts=True)
        packed = []
        for of in self._columns[table]:
            values = columns[of.name][order]
            if of.kind == "text":
                codes = [texts.setdefault(text, len(texts) + 1) if text else 0 for text in values.tolist()]
                values = np.array(codes, np.int64)
            packed.append(pack(values, counts))
        if table == "ticks":
            packed.append(columns["hash"][columns["hashed"]].astype("<u8").tobytes() if "hash" in columns else b"")
        return [ids.tolist(), counts.tolist(), packed]


BOOL = KindColumn("", "bool")


def _kind_of(table: str) -> str:
    """The kind of a table: `states` for those of every class."""
    return "states" if table.partition(".")[0] == "states" else table


def _rows_of(table: str, columns: Columns) -> int:
    """Returns the number of rows: the length of the columns, of which a single value fills all rows."""
    sizes = {name: np.size(columns[name]) for name in columns if np.ndim(columns[name])}
    rows = max(sizes.values(), default=min(1, len(columns)))
    for name, size in sizes.items():
        if size not in (1, rows):
            raise HitregError(f"table {table}: column {name} has {size} values, and another column has {rows}")
    return rows


def _least(of: Union[KindColumn, Field]) -> Union[int, str]:
    """The value of a missing column."""
    if of.kind == "text":
        return ""
    return -1 if isinstance(of, KindColumn) and of.optional else 0


def _filled(part: dict[str, Values], name: str) -> Values:
    return part[name] if name in part else np.zeros(len(part[""]), np.uint64)


def _stored(of: Union[KindColumn, Field], values: Any, rows: int) -> Values:
    """Returns values of a column as the file stores them; texts stay texts."""
    if of.kind == "text":
        texts = np.broadcast_to(np.asarray(values, object), rows)
        if not all(isinstance(text, str) for text in texts):
            raise HitregError(f"column {of.name}: its values are not all texts")
        return texts
    names = list(of.names) if isinstance(of, KindColumn) else []
    if names and np.asarray(values).dtype.kind in "OU":
        values = [names.index(name) for name in np.broadcast_to(values, rows).tolist()]
    array = as_array(values)
    if not array.size:
        array = array.astype(np.int64)
    if of.kind[0] == "f":
        try:
            array = _as_floats(of, array)
        except HitregError as error:
            raise HitregError(f"column {of.name}: {error}") from None
    elif array.dtype.kind not in "biu":
        raise HitregError(f"column {of.name}: {array.dtype} is no {of.kind}")
    elif array.size:
        _check_range(of, int(array.min()), int(array.max()))
    if isinstance(of, KindColumn) and of.optional:
        array = array.astype(np.int64) + 1
    return np.broadcast_to(typed(array, of.kind), rows)


def _as_floats(of: Union[KindColumn, Field], values: Values) -> Values:
    """Returns values as a float type. Floats are rounded to it; integers that it does not hold are refused."""
    if values.dtype.kind in "biu":
        return exactly(values, of.kind)
    wide = values.astype(np.float64)
    with np.errstate(all="ignore"):
        rounded: Values = wide.astype(DTYPE[of.kind])
    lost = np.isinf(rounded) & np.isfinite(wide)
    if lost.any():
        raise HitregError(f"{wide[lost].flat[0]} is no {of.kind}")
    return rounded


def _check_range(of: Union[KindColumn, Field], least: int, most: int) -> None:
    low, high = RANGES[of.kind]
    if isinstance(of, KindColumn):
        low = -1 if of.optional else low
        high = len(of.names) - 1 if of.names else MOST.get(of.name, high)
    for value in (least, most):
        if not low <= value <= high:
            raise HitregError(f"column {of.name}: {value} is no {of.kind} from {low} to {high}")


class TraceWriter(_Writer):
    """Writes a trace: what a build computes from a log. It replaces an existing trace, but no other file."""

    def __init__(
        self,
        path: Union[str, os.PathLike[str]],
        *,
        game: str,
        mode: str = "closed",
        log_digest: str = "",
        settings: Mapping[str, object] = {},
    ) -> None:
        pairs = [[key, setting_text(value)] for key, value in settings.items()]
        header = {"game": game, "mode": mode, "log_digest": log_digest, "settings": pairs}
        # For each table: its columns without their values, the number of its rows so far, and its key.
        self._tables: dict[str, Table] = {}
        super().__init__(path, "hittrace", header, True)

    def write(self, table: str, columns: Columns, *, key: Sequence[str] = (), units: Mapping[str, str] = {}) -> None:
        """Adds rows to a table. The type of a column is that of its array.

        A list of `int` becomes u32, i64 if a number is negative or larger, or u64 if one is 2^63 or larger. Texts
        become names. Later rows of a table have the columns, the key and the units of its first rows. Their values
        take the types of the first rows, which must hold them exactly.
        """
        rows = _rows_of(table, columns)
        unknown = ({*key} | {*units}) - {*columns}
        if unknown:
            raise HitregError(f"table {table}: its key or units name {', '.join(sorted(unknown))}, which is no column")
        first = self._tables.get(table, Table(table, {}, 0))
        key, units = list(key) or first.key, {**first.units, **units}
        if first.rows and (key != first.key or units != first.units):
            raise HitregError(f"table {table}: its key and units are not those of its first rows")
        if first.rows and not rows:
            return
        if first.rows:
            written = _later_columns(first, columns, rows)
        else:
            written = {name: _first_column(table, name, columns[name], rows, units) for name in columns}
        empty = {name: replace(of, values=of.values[:0].copy()) for name, of in written.items()}
        self._tables[table] = Table(table, empty, first.rows + rows, key)
        if rows:
            self._add(table, written, rows, key)

    def _add(self, table: str, columns: Mapping[str, Column], rows: int, key: Sequence[str]) -> None:
        """Writes rows, in chunks of about a MiB."""
        width = sum(of.values.itemsize for of in columns.values())
        step = max(1, TRACE_CHUNK_BYTES // max(width, 1))
        for start in range(0, max(rows, 1), step):
            maps = [_column_map(name, of, slice(start, start + step)) for name, of in columns.items()]
            content = {"table": table, "rows": min(step, rows - start), "key": list(key), "columns": maps}
            self._sink.chunk(content)

    def close(self) -> None:
        """Ends the file with the tables that have no rows, and gives it its name; see `LogWriter.close`."""
        if not self._out.closed:
            for name, of in self._tables.items():
                if not of.rows:
                    self._add(name, of.columns, 0, of.key)
        super().close()


def _first_column(table: str, name: str, values: Any, rows: int, units: Mapping[str, str]) -> Column:
    try:
        return as_column(values, rows, units.get(name, ""))
    except HitregError as error:
        raise HitregError(f"table {table}: column {name}: {error}") from None


def _later_columns(first: Table, columns: Columns, rows: int) -> dict[str, Column]:
    """Returns later columns of a table, in the order of its first ones and with their types."""
    if {*columns} != {*first.columns}:
        differing = ", ".join(sorted({*columns} ^ {*first.columns}))
        raise HitregError(f"table {first.name}: its first rows have other columns: {differing}")
    written = {}
    for name, of in first.columns.items():
        try:
            written[name] = as_later_column(columns[name], rows, of)
        except HitregError as error:
            raise HitregError(f"table {first.name}: column {name}: {error}") from None
    return written


def _column_map(name: str, of: Column, rows: slice) -> dict[str, Any]:
    values, kind = of.values[rows], of.kind
    more: dict[str, Any] = {"unit": of.unit} if of.unit else {}
    if of.names is not None:
        more["names"] = of.names
        kind, values = ("name", values.astype(np.uint8)) if len(of.names) <= 256 else ("u32", values)
    data = np.ascontiguousarray(values.astype(values.dtype.newbyteorder("<"))).tobytes()
    return {"name": name, "type": kind, "data": data, **more}
