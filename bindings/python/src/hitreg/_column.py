"""Packed columns: "Packed columns" in docs/format.md. All arithmetic is on signed 64-bit numbers and wraps."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np
from numpy.typing import NDArray

from ._container import MAX_CHUNK_MEMORY, HitregError

Values = NDArray[Any]
Counts = NDArray[np.int64]
RANGES = {"u32": (0, 2**32 - 1), "i32": (-(2**31), 2**31 - 1), "bool": (0, 1)}
DTYPES = {"u32": "u4", "i32": "i4", "u64": "u8", "i64": "i8", "f32": "f4", "f64": "f8", "bool": "?"}
DTYPE = {kind: np.dtype(code) for kind, code in DTYPES.items()}


class Budget:
    """The memory that the decoder of one chunk may still allocate."""

    def __init__(self) -> None:
        self._left = MAX_CHUNK_MEMORY

    def counts(self, rows: Any, width: int) -> Counts:
        """Returns the rows of each series as an array, and takes memory for `width` columns of them."""
        rows = [int(count) for count in rows]
        self._left -= 8 * sum(rows) * width
        if min(rows, default=0) < 0 or self._left < 0:
            raise HitregError(f"its rows would take more than {MAX_CHUNK_MEMORY >> 20} MiB of memory")
        return np.array(rows, np.int64)


def _unzigzag(numbers: NDArray[np.uint64]) -> NDArray[np.int64]:
    return (numbers >> np.uint64(1)).view(np.int64) ^ -(numbers & np.uint64(1)).view(np.int64)


def _zigzag(numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
    return ((numbers << np.int64(1)) ^ (numbers >> np.int64(63))).view(np.uint64)


def _varints(data: NDArray[np.uint8], count: int) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
    """Returns the first `count` varints, and the bytes after them."""
    if count == 0:
        return np.zeros(0, np.uint64), data
    ends = np.flatnonzero(data[: 10 * count] < 128)[:count]
    if len(ends) < count:
        raise HitregError("it ends too early")
    rest, data = data[ends[-1] + 1 :], data[: ends[-1] + 1]
    if len(data) == count:
        return data.astype(np.uint64), rest
    starts = np.concatenate(([0], ends[:-1] + 1))
    lengths = ends + 1 - starts
    if lengths.max() > 10:
        raise HitregError("a number is longer than 64 bits")
    values = (data[starts] & 127).astype(np.uint64)
    for place in range(1, int(lengths.max())):
        longer = np.flatnonzero(lengths > place)
        values[longer] |= (data[starts[longer] + place] & 127).astype(np.uint64) << np.uint64(7 * place)
    return values, rest


def _one_varint(data: NDArray[np.uint8]) -> tuple[int, NDArray[np.uint8]]:
    values, rest = _varints(data, 1)
    return int(values[0]), rest


def _residuals(packing: int, count: int, data: NDArray[np.uint8]) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
    """Returns the zigzag numbers of `count` residuals."""
    if packing == 0:
        value, data = _one_varint(data)
        return np.full(count, value, np.uint64), data
    if packing == 1:
        return _varints(data, count)
    if packing == 2:
        width = int(data[0])
        if not 1 <= width <= 8 or len(data) - 1 < width * count:
            raise HitregError(f"its numbers are {width} bytes wide" if not 1 <= width <= 8 else "it ends too early")
        planes = np.zeros((count, 8), np.uint8)
        planes[:, :width] = data[1 : 1 + width * count].reshape(width, count).T
        return planes.view("<u8").ravel().astype(np.uint64), data[1 + width * count :]
    nonzero, data = _one_varint(data)
    if nonzero > count:
        raise HitregError(f"{nonzero} of its {count} values are not 0")
    gaps, data = _varints(data, nonzero)
    values, data = _varints(data, nonzero)
    if nonzero and int(gaps.max()) >= count:
        raise HitregError("a value is beyond its end")
    places = np.cumsum(gaps.astype(np.int64) + 1) - 1
    if nonzero and int(places[-1]) >= count:
        raise HitregError("a value is beyond its end")
    residuals = np.zeros(count, np.uint64)
    residuals[places] = values
    return residuals, data


def _sums(steps: NDArray[np.int64], starts: Counts, counts: Counts) -> NDArray[np.int64]:
    """Returns the sums of the steps since the start of each series; the first step of each is 0."""
    sums = np.cumsum(steps)
    return sums - np.repeat(sums[starts], counts)


def _floats(numbers: NDArray[np.int64], bits: str, sign: int) -> Values:
    if numbers.size and not -sign <= int(numbers.min()) <= int(numbers.max()) < sign:
        raise HitregError("a number is not the place of any float")
    places = np.where(numbers < 0, np.int64(-1) - numbers, numbers).astype(np.uint64)
    return (places | np.where(numbers < 0, np.uint64(sign), np.uint64(0))).astype(bits)


def unpack(data: bytes, counts: Counts, references: Optional[Values] = None) -> Values:
    """Returns the values of a packed column: 64-bit integers, singles or doubles."""
    rows = int(counts.sum())
    if not data:
        return np.zeros(rows, np.int64)
    left = np.frombuffer(data, np.uint8)
    order, packing, form = int(left[0]) & 3, int(left[0]) >> 2 & 3, int(left[0]) >> 4
    if order == 3 or form > 5:
        raise HitregError(f"its order is {order} and its form {form}")
    left, shift = left[1:], 0
    if form in (2, 4):
        shift, left = int(left[:1].view(np.int8)[0]), left[1:]
    unit, left = _one_varint(left)
    counts = counts[counts > 0]
    firsts, left = _varints(left, len(counts) if order else 0)
    rest, left = _residuals(packing, rows - len(firsts), left)
    if len(left):
        raise HitregError("bytes follow its last value")
    values = _unzigzag(rest) * np.array(unit, np.uint64).view(np.int64)
    if order:
        starts = np.cumsum(counts) - counts
        steps = np.zeros(rows, np.int64)
        inner = np.ones(rows, bool)
        inner[starts] = False
        steps[inner] = values
        if order == 2:
            steps = _sums(steps, starts, counts)
        values = _sums(steps, starts, counts) + np.repeat(np.cumsum(_unzigzag(firsts)), counts)
    if form == 1:
        if references is None:
            raise HitregError("it is relative to nothing")
        return values + references
    if form in (2, 4):
        return np.ldexp(values.astype(np.float64), -shift).astype("f4" if form == 2 else "f8")
    if form == 3:
        return _floats(values, "u4", 1 << 31).view("f4")
    return _floats(values, "u8", 1 << 63).view("f8") if form == 5 else values


def typed(values: Values, kind: str) -> Values:
    """Returns unpacked values as a type of docs/format.md. An integer column of zeros is 0 in every type."""
    dtype, form = DTYPE[kind], values.dtype.kind
    if dtype.kind == "f":
        if values.dtype != dtype and (form == "f" or values.any()):
            raise HitregError(f"its values are no {kind}")
    elif form == "f":
        raise HitregError(f"its values are floats, and it holds {kind}")
    elif kind in RANGES and values.size:
        least, most = int(values.min()), int(values.max())
        if kind == "i32" and most > RANGES["i32"][1] and 0 <= least and most < 1 << 32:
            return values.astype("u4").view("i4")
        if least < RANGES[kind][0] or most > RANGES[kind][1]:
            raise HitregError(f"{least if least < RANGES[kind][0] else most} is no {kind}")
    return values.astype(dtype)


def _is_kept(values: Values, cast: Values) -> NDArray[np.bool_]:
    """Returns for each value whether a cast to another type keeps it. NaN stays NaN."""
    old, new = values.dtype, cast.dtype
    kept: NDArray[np.bool_] = np.full(values.shape, old.kind == "b" or old == new)
    if kept.all():
        return kept
    if old.kind == "f" and new.kind == "f":
        kept = (cast.astype(old) == values) | np.isnan(values)
    elif old.kind in "iu" and new.kind == "f":
        # The largest integers round to a power of two that their type does not have.
        inside = cast < np.exp2(np.float64(8 * old.itemsize - (old.kind == "i")))
        kept = inside & (np.where(inside, cast, 0).astype(old) == values)
    elif old.kind in "iu":
        low, high = int(np.iinfo(old).min), int(np.iinfo(old).max)
        least, most = (0, 1) if new.kind == "b" else (int(np.iinfo(new).min), int(np.iinfo(new).max))
        kept = (values >= old.type(max(least, low))) & (values <= old.type(min(most, high)))
    return kept


def exactly(values: Values, kind: str) -> Values:
    """Returns values as another type; raises for a value that the type does not hold."""
    with np.errstate(all="ignore"):
        cast = values.astype(DTYPE[kind])
        kept = _is_kept(values, cast)
    if not kept.all():
        raise HitregError(f"{values[~kept].flat[0]} is no {kind}")
    return cast


def _varint(number: int) -> bytes:
    data = bytearray()
    while number > 127:
        data.append(number & 127 | 128)
        number >>= 7
    return bytes([*data, number])


def pack(values: Values, counts: Counts) -> bytes:
    """Packs a column: order 1, packing 2 (or 0), without loss."""
    form = 0
    if values.dtype.kind == "f":
        wide = values.dtype.itemsize == 8
        bits = values.view("i8" if wide else "i4").astype(np.int64)
        form, sign = (5, np.int64(2**63 - 1)) if wide else (3, np.int64(2**31 - 1))
        numbers = np.where(bits < 0, np.int64(-1) - (bits & sign), bits)
    else:
        numbers = values.astype(np.uint64).view(np.int64) if values.dtype == np.uint64 else values.astype(np.int64)
    if not numbers.any():
        return b""
    counts = counts[counts > 0]
    starts = np.cumsum(counts) - counts
    inner = np.ones(len(numbers), bool)
    inner[starts] = False
    residuals = _zigzag(np.diff(numbers, prepend=np.int64(0))[inner])
    firsts = _zigzag(np.diff(numbers[starts], prepend=np.int64(0)))
    head = b"\1" + b"".join(_varint(int(first)) for first in firsts)
    if not residuals.any():
        return bytes([form << 4 | 1]) + head + b"\0"
    width = (int(residuals.max()).bit_length() + 7) // 8
    planes = np.ascontiguousarray(residuals.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :width].T)
    return bytes([form << 4 | 2 << 2 | 1]) + head + bytes([width]) + planes.tobytes()
