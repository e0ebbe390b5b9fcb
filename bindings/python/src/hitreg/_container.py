"""Frames, chunks and limits of files: "Container" in docs/format.md."""

from __future__ import annotations

import mmap
import os
from array import array
from dataclasses import dataclass
from typing import Any, BinaryIO, Iterator, Optional, Union

import msgpack
import xxhash
import zstandard

MAX_CHUNK_BYTES = 12 << 20
MAX_CHUNK_MEMORY = 64 << 20
MAX_HEADER_VALUES = 1 << 17
MAX_VALUES = 1 << 20
MAX_BLOCK = 128 << 10
MAX_SKIPPABLE = 64 << 20
MAGIC = b"\x28\xb5\x2f\xfd"
SKIPPABLE = (b"\x50\x2a\x4d\x18", b"\x5e\x2a\x4d\x18")
# The search for an intact chunk after a damaged one looks at this many bytes for each byte of the file.
LOOKS_PER_BYTE = 8

Buffer = Union[bytes, mmap.mmap]
# What a value of an unexpected type or size raises in the decoders.
MALFORMED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


class HitregError(ValueError):
    """A file that cannot be read, or values that cannot be written. The message says where and why."""


class DamageWarning(UserWarning):
    """A file is cut off or damaged, and the rows around the damage were read."""


@dataclass(frozen=True)
class Damage:
    """A damaged or missing part of a file. `offset` is where it begins, in bytes."""

    offset: int
    part: str
    what: str

    def __str__(self) -> str:
        return f"offset {self.offset}: {self.part}: {self.what}"


@dataclass(frozen=True)
class Chunk:
    """The MessagePack map of one chunk."""

    offset: int
    index: int
    content: dict[str, Any]


class _Cut(Exception):
    """The file ends inside a frame."""


def frame_at(data: Buffer, at: int) -> tuple[int, Optional[int]]:
    """Returns the end of the frame at `at`, and the size of its content; `None` for a skippable frame.

    The frame is not unpacked (RFC 8878, section 3.1). A chunk must state its size and have a checksum.
    """

    def number(size: int) -> int:
        nonlocal at
        skip(size)
        return int.from_bytes(data[at - size : at], "little")

    def skip(size: int) -> None:
        nonlocal at
        if at + size > len(data):
            raise _Cut
        at += size

    start, magic = at, data[at : at + 4]
    skip(4)
    if magic in SKIPPABLE:
        size = number(4)
        if size > MAX_SKIPPABLE:
            raise HitregError(f"a seek table of {size} bytes is larger than any can be")
        skip(size)
        return at, None
    if magic != MAGIC:
        raise HitregError(f"the bytes {magic.hex()} begin no chunk")
    descriptor = number(1)
    single = descriptor & 0x20
    if descriptor & 0x1B or not descriptor & 0x04 or (descriptor >> 6 == 0 and not single):
        raise HitregError(f"no chunk has the zstd frame descriptor {descriptor:02x}")
    if not single:
        skip(1)
    size_bytes = 1 << (descriptor >> 6)
    content = number(size_bytes) + (256 if size_bytes == 2 else 0)
    if content > MAX_CHUNK_BYTES:
        raise HitregError(f"its content has {content} bytes; the limit is {MAX_CHUNK_BYTES}")
    last = False
    while not last:
        header = number(3)
        last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
        if kind == 3 or size > MAX_BLOCK or at - start + size > MAX_CHUNK_BYTES:
            raise HitregError("it has an invalid zstd block")
        skip(1 if kind == 1 else size)
    skip(4)
    return at, content


def unpack_frame(frame: bytes, size: int) -> bytes:
    try:
        content = zstandard.ZstdDecompressor().decompress(frame)
    except zstandard.ZstdError as error:
        raise HitregError(f"it does not unpack ({error})") from None
    if len(content) != size:
        raise HitregError(f"it unpacks to {len(content)} bytes, and its header says {size}")
    return content


def count_values(data: bytes, most: int) -> None:
    """Raises for MessagePack with more than `most` values, nested ones included, before anything is allocated for them."""
    sizes = {0xCA: 4, 0xCE: 4, 0xD2: 4, 0xCB: 8, 0xCF: 8, 0xD3: 8, 0xCC: 1, 0xD0: 1, 0xCD: 2, 0xD1: 2}
    sizes.update({0xD4 + power: 1 + (1 << power) for power in range(5)})
    lengths = {0xC4: 1, 0xD9: 1, 0xC5: 2, 0xDA: 2, 0xC6: 4, 0xDB: 4, 0xC7: 1, 0xC8: 2, 0xC9: 4}
    at, seen, awaited = 0, 0, 1
    while awaited and at < len(data):
        mark, at, inner = data[at], at + 1, 0
        if mark <= 0x7F or mark >= 0xE0:
            pass
        elif mark <= 0x8F:
            inner = 2 * (mark & 15)
        elif mark <= 0x9F:
            inner = mark & 15
        elif mark <= 0xBF:
            at += mark & 31
        elif mark in lengths:
            wide = lengths[mark]
            at += wide + int.from_bytes(data[at : at + wide], "big") + (1 if 0xC7 <= mark <= 0xC9 else 0)
        elif mark >= 0xDC:
            wide = 4 if mark & 1 else 2
            inner = int.from_bytes(data[at : at + wide], "big") * (2 if mark >= 0xDE else 1)
            at += wide
        else:
            at += sizes.get(mark, 0)
        awaited += inner - 1
        seen += 1
        if seen + awaited > most:
            raise HitregError(f"it holds more than {most} MessagePack values")


def decode_map(content: bytes, most: int = MAX_VALUES) -> dict[str, Any]:
    count_values(content, most)
    try:
        value = msgpack.unpackb(content, raw=False, strict_map_key=False)
    except MALFORMED as error:
        raise HitregError(f"it is no MessagePack map ({error})") from None
    if not isinstance(value, dict):
        raise HitregError("it is no MessagePack map")
    return value


class Sizes:
    """The chain and the frame sizes of the chunks so far: the content of the seal and the seek table."""

    def __init__(self) -> None:
        self.chain, self.sizes = 0, array("I")

    def add(self, frame: bytes, content: int) -> None:
        self.chain = xxhash.xxh3_64_intdigest(frame, seed=self.chain)
        self.sizes.extend((len(frame), content))

    def tail(self) -> bytes:
        def word(number: int) -> bytes:
            return number.to_bytes(4, "little")

        frames = len(self.sizes) // 2 + 1
        entries = b"".join(map(word, [*self.sizes, 24, 0]))
        seal = SKIPPABLE[0] + word(16) + b"hitseal\0" + self.chain.to_bytes(8, "little")
        return seal + SKIPPABLE[1] + word(8 * frames + 9) + entries + word(frames) + b"\0" + word(0x8F92EAB1)


class Container:
    """The chunks of a file, in order."""

    def __init__(self, path: Union[str, os.PathLike[str]], magic: str) -> None:
        self.path = os.fspath(path)
        try:
            with open(path, "rb") as file:
                # An empty file cannot be mapped.
                mapped = os.fstat(file.fileno()).st_size > 0
                self.data: Buffer = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if mapped else b""
            if len(self.data) >= len(MAGIC) and self.data[: len(MAGIC)] not in (MAGIC, *SKIPPABLE):
                raise HitregError("it is neither a log nor a trace")
            self._end, size = frame_at(self.data, 0)
            if size is None:
                raise HitregError("it begins with a seek table")
            frame = self.data[: self._end]
            first = decode_map(unpack_frame(frame, size), MAX_HEADER_VALUES)
            self.format, self.header = self._checked(first, magic)
        except _Cut:
            raise HitregError(f"{self.path}: it ends inside its header: nothing can be read") from None
        except HitregError as error:
            raise HitregError(f"{self.path}: {error}") from None
        self.written_by: Optional[str] = first.get("written_by")
        self.sealed = bool(first.get("sealed"))
        self._first = Sizes()
        self._first.add(frame, size)

    @staticmethod
    def _checked(first: dict[str, Any], magic: str) -> tuple[tuple[int, int], dict[str, Any]]:
        if first.get("magic") != magic:
            found = {"hitlog": "it is a log: use open_log", "hittrace": "it is a trace: use open_trace"}
            raise HitregError(found.get(str(first.get("magic")), "it is neither a log nor a trace"))
        try:
            major, minor = map(int, first["format"])
            header = dict(first["header"])
        except MALFORMED as error:
            raise HitregError(f"its header is not valid ({error!r})") from None
        if major != 1:
            raise HitregError(f"it has format {major}.{minor}, and this package reads 1.x: use a newer package")
        return (major, minor), header

    def chunks(self, damage: list[Damage]) -> Iterator[Chunk]:
        """Yields the intact chunks and adds what is damaged to `damage`, in constant memory."""
        data, sizes, at, index = self.data, Sizes(), self._end, 1
        sizes.chain, sizes.sizes = self._first.chain, self._first.sizes[:]
        looks, before_at = LOOKS_PER_BYTE * len(data) + MAX_CHUNK_MEMORY, 0
        while True:
            start, why, found, place = at, None, None, at
            while found is None and place >= 0 and looks > 0:
                try:
                    end, found = self._chunk_at(place, index)
                except _Cut:
                    why = why or f"the last {len(data) - start} bytes are cut off"
                    looks -= 64
                except HitregError as error:
                    why = why or str(error)
                    looks -= 8 * MAX_BLOCK
                if found is None:
                    place = data.find(MAGIC, place + 1)
            if found is None:
                if start == len(data):
                    why = "the file is cut off here; everything before is intact"
                damage.append(Damage(start, f"chunk {index}", why or "it is damaged"))
                return
            frame, size, chunk = found
            intact = place == start and chunk.index == index
            if not intact:
                damage.append(Damage(start, f"chunk {index}", why or f"chunk {chunk.index} is in its place"))
            if self.sealed:
                before = chunk.content.get("before")
                if not isinstance(before, int) or not 0 <= before < 1 << 64:
                    damage.append(
                        Damage(place, f"chunk {chunk.index}", "it lacks the checksum of the chunks before it")
                    )
                elif before != sizes.chain:
                    if intact:
                        what = "its bytes are not those that were written, although it unpacks"
                        damage.append(Damage(before_at, f"chunk {index - 1}", what))
                    sizes.chain = before
            sizes.add(frame, size)
            at, before_at, index = end, place, chunk.index + 1
            if chunk.content.get("end"):
                self._check_tail(at, sizes, damage)
                return
            yield chunk

    def _chunk_at(self, at: int, index: int) -> tuple[int, tuple[bytes, int, Chunk]]:
        end, size = frame_at(self.data, at)
        if size is None:
            raise HitregError("the end of the file comes before its last chunk")
        frame = self.data[at:end]
        content = decode_map(unpack_frame(frame, size))
        found = content.get("index")
        if not isinstance(found, int) or not index <= found < 1 << 32:
            raise HitregError(f"chunk {found} is in its place")
        return end, (frame, size, Chunk(at, found, content))

    def _check_tail(self, at: int, sizes: Sizes, damage: list[Damage]) -> None:
        expected = sizes.tail()
        found = self.data[at : at + len(expected) + 1]
        if found == expected or not self.sealed and not found:
            return
        if expected.startswith(found):
            damage.append(Damage(at, "the seek table", "it is cut off; all chunks are intact"))
        elif not damage:
            damage.append(Damage(at, "the seal and the seek table", "they do not agree with the chunks"))


class ChunkSink:
    """Writes chunks, the end, the seal and the seek table."""

    def __init__(self, out: BinaryIO, magic: str, header: dict[str, Any]) -> None:
        self._out, self._sizes, self.index = out, Sizes(), 0
        self._compressor = zstandard.ZstdCompressor(level=9, write_checksum=True, write_content_size=True)
        first = {"magic": magic, "format": [1, 0], "sealed": True, "written_by": "hitreg for Python", "header": header}
        count_values(self._add(first), MAX_HEADER_VALUES)

    def _add(self, content: dict[str, Any]) -> bytes:
        packed: bytes = msgpack.packb(content)
        if len(packed) > MAX_CHUNK_BYTES:
            raise HitregError(f"a chunk of {len(packed)} bytes exceeds the limit of {MAX_CHUNK_BYTES}")
        frame = self._compressor.compress(packed)
        self._out.write(frame)
        self._sizes.add(frame, len(packed))
        self.index += 1
        return packed

    def chunk(self, content: dict[str, Any]) -> None:
        self._add({"index": self.index, "before": self._sizes.chain, **content})

    def finish(self) -> None:
        self.chunk({"end": True})
        self._out.write(self._sizes.tail())
