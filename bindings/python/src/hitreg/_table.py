"""Tables: columns as numpy arrays, and their conversions to pandas and Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Optional

import numpy as np

from ._column import DTYPE, Values, exactly
from ._container import HitregError

if TYPE_CHECKING:
    import pandas
    import pyarrow

MAX_TEXT_BYTES = 4 << 20
NONE = "none"


@dataclass
class Column:
    """Values of one type. A column of `names` holds an index into them for each row."""

    kind: str
    values: Values
    unit: str = ""
    names: Optional[list[str]] = None

    @property
    def array(self) -> Values:
        """The values; names as an array of `str`."""
        return self.values if self.names is None else np.array(self.names, object)[self.values]


def column(kind: str, values: Values, unit: str = "", names: Optional[Sequence[str]] = None) -> Column:
    """Returns a column, with indices into names checked."""
    if names is not None:
        if values.size and not 0 <= int(values.min()) <= int(values.max()) < len(names):
            raise HitregError("an index has no name")
        kind, values = kind if kind == "text" else "name", values.astype(np.uint32)
    return Column(kind, values, unit, None if names is None else list(map(str, names)))


class Table(Mapping[str, Values]):
    """Named columns of equal length. `table["at_us"]` is a numpy array, `table.columns["at_us"]` has its unit."""

    def __init__(self, name: str, columns: dict[str, Column], rows: int, key: Sequence[str] = ()) -> None:
        self.name, self.columns, self.rows, self.key = name, columns, rows, list(key)

    def __getitem__(self, name: str) -> Values:
        return self.columns[name].array

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __repr__(self) -> str:
        columns = ", ".join(f"{name} {column.kind}" for name, column in self.columns.items())
        return f"<hitreg.Table {self.name}: {self.rows} rows of {columns}>"

    @property
    def units(self) -> dict[str, str]:
        """The units of the columns that have one."""
        return {name: column.unit for name, column in self.columns.items() if column.unit}

    def take(self, rows: Values) -> Table:
        """Returns some rows, by index or by a mask."""
        chosen = np.atleast_1d(np.arange(self.rows)[rows])
        columns = {name: replace(column, values=column.values[chosen]) for name, column in self.columns.items()}
        return Table(self.name, columns, len(chosen), self.key)

    def to_pandas(self) -> pandas.DataFrame:
        """Returns a data frame. Names are categories; `attrs["units"]` has the units."""
        import pandas

        def series(column: Column) -> Any:
            if column.names is None:
                return column.values
            names = list(dict.fromkeys(column.names))
            place = {name: place for place, name in enumerate(names)}
            codes: Any = np.array([place[name] for name in column.names], np.int64)[column.values]
            return pandas.Categorical.from_codes(codes, pandas.Index(names, dtype=object))

        frame = pandas.DataFrame({name: series(column) for name, column in self.columns.items()})
        frame.attrs = {"table": self.name, "units": self.units}
        return frame

    def to_arrow(self) -> pyarrow.Table:
        """Returns an Arrow table. Names are dictionaries; the metadata of a field has its unit."""
        import pyarrow

        def values(column: Column) -> Any:
            if column.names is None:
                return pyarrow.array(column.values, pyarrow.binary() if column.kind == "bytes" else None)
            # In a dictionary of Arrow a name may appear twice.
            indices = pyarrow.array(column.values.astype(np.int32))
            return pyarrow.DictionaryArray.from_arrays(indices, pyarrow.array(column.names, pyarrow.string()))

        arrays = {name: values(column) for name, column in self.columns.items()}
        units = {name: {"unit": column.unit} if column.unit else None for name, column in self.columns.items()}
        fields = [pyarrow.field(name, array.type, metadata=units[name]) for name, array in arrays.items()]
        metadata = {"hitreg.table": self.name, "hitreg.key": ",".join(self.key)}
        return pyarrow.Table.from_arrays(list(arrays.values()), schema=pyarrow.schema(fields, metadata=metadata))


def joined(parts: Sequence[Table]) -> Table:
    """Joins the rows of a table's chunks. Rows without an optional column of names have the name `none`."""
    filled = [part for part in parts if part.rows] or parts[-1:]
    columns: dict[str, Column] = {}
    for part in filled:
        for name, like in part.columns.items():
            if name not in columns:
                columns[name] = _joined(name, like, [(part.columns.get(name), part.rows) for part in filled])
    return Table(parts[0].name, columns, sum(part.rows for part in filled), filled[0].key)


def _joined(name: str, like: Column, parts: Sequence[tuple[Optional[Column], int]]) -> Column:
    if like.names is None:
        given = [column for column, _ in parts if column is not None]
        # An undeclared column of zeros does not show its type.
        shown = [column for column in given if column.kind != "i64" or column.values.any()] or given
        kinds = {column.kind for column in shown}
        if len(given) < len(parts) or len(kinds) > 1:
            raise HitregError(f"column {name!r} has another type in another chunk")
        dtype = shown[0].values.dtype
        return replace(shown[0], values=np.concatenate([column.values.astype(dtype) for column in given]))
    places: dict[str, int] = {}
    codes = []
    for column, rows in parts:
        names = [NONE] if column is None else column.names
        if names is None:
            raise HitregError(f"column {name!r} has another type in another chunk")
        to = np.array([places.setdefault(name, len(places)) for name in names], np.uint32)
        codes.append(np.full(rows, to[0]) if column is None else to[column.values])
    if like.kind == "text" and sum(map(len, places)) > MAX_TEXT_BYTES:
        raise HitregError(f"the different texts of {name!r} take more than {MAX_TEXT_BYTES >> 20} MiB")
    return replace(like, values=np.concatenate(codes), names=list(places))


def as_array(values: Any) -> Values:
    """Returns values that a program writes as an array. Python's int stay integers, of 64 bits."""
    array = np.asarray(values)
    is_float = array.dtype.kind == "f" and not isinstance(values, (np.ndarray, np.generic))
    if not array.size or not is_float and array.dtype.kind != "O":
        return array
    # numpy makes floats of integers on both sides of 2^63, and of those beside floats.
    exact = np.asarray(values, object)
    if not all(isinstance(value, (int, np.integer)) for value in exact.flat):
        for value in exact.flat:
            if isinstance(value, (int, np.integer)) and float(value) != int(value):
                raise HitregError(f"{value} is no f64")
        return array
    least, most = min(exact.flat), max(exact.flat)
    if -(1 << 63) <= least and most < 1 << 63:
        return exact.astype(np.int64)
    if 0 <= least and most < 1 << 64:
        return exact.astype(np.uint64)
    raise HitregError(f"no type of 64 bits holds {least} and {most}")


def as_column(values: Any, rows: int, unit: str = "") -> Column:
    """Returns values that a program writes as a column: an array's type, `names` for text, integers for Python's int."""
    array = as_array(values)
    if array.dtype.kind in "OU":
        # numpy makes texts of numbers beside texts.
        texts = np.broadcast_to(np.asarray(values, object), (rows,)).tolist()
        if not all(isinstance(text, str) for text in texts):
            raise HitregError("its values are not all texts")
        names = {text: place for place, text in enumerate(dict.fromkeys(texts))}
        codes = np.array([names[text] for text in texts], np.uint32)
        return column("name", codes, unit, list(names))
    array = np.broadcast_to(array, (rows,))
    if not isinstance(values, (np.ndarray, np.generic)) and array.dtype.kind == "i":
        is_small = not array.size or 0 <= int(array.min()) <= int(array.max()) < 1 << 32
        array = array.astype("u4" if is_small else "i8")
    # Traces have no columns of these types; a wider one holds every value.
    wider = {"i": np.dtype("i8"), "u": np.dtype("u4"), "f": np.dtype("f4")}.get(array.dtype.kind, array.dtype)
    if array.dtype.itemsize < wider.itemsize:
        array = array.astype(wider)
    for kind, dtype in DTYPE.items():
        if array.dtype == dtype:
            return Column(kind, array, unit)
    raise HitregError(f"no column holds values of the type {array.dtype}")


def as_later_column(values: Any, rows: int, first: Column) -> Column:
    """Returns later values of a column, as the type of its first ones. New names follow the first ones."""
    found = as_column(values, rows, first.unit)
    if (found.names is None) != (first.names is None):
        kinds = ("numbers", "texts") if first.names is None else ("texts", "numbers")
        raise HitregError(f"its first rows hold {kinds[0]}, and these {kinds[1]}")
    if first.names is None or found.names is None:
        try:
            return replace(found, kind=first.kind, values=exactly(found.values, first.kind))
        except HitregError as error:
            raise HitregError(f"{error}, the type of its first rows: pass those as an array of a wider type") from None
    names = list(dict.fromkeys([*first.names, *found.names]))
    place = {name: place for place, name in enumerate(names)}
    codes = np.array([place[name] for name in found.names], np.uint32)[found.values]
    return column("name", codes, first.unit, names)
