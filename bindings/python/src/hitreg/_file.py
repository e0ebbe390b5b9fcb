"""What logs and traces have in common: tables by name, streams of chunks, and damage."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator
from typing import Optional, Union

from ._container import MALFORMED, Chunk, Container, Damage, DamageWarning, HitregError
from ._table import Table, joined


class File:
    """A log or a trace. Tables are read when they are asked for."""

    _magic = ""

    def __init__(self, path: Union[str, os.PathLike[str]]) -> None:
        self._container = Container(path, self._magic)
        self._names: Optional[list[str]] = None
        # The damage found so far, and whether every row was decoded.
        self._damage: list[Damage] = []
        self._is_checked = False
        self._tables: dict[str, Table] = {}
        self.path = self._container.path
        self.format, self.written_by, self.sealed = (
            self._container.format,
            self._container.written_by,
            self._container.sealed,
        )

    def _names_of(self, chunk: Chunk) -> Iterable[str]:
        raise NotImplementedError

    def _decode(self, chunk: Chunk, name: str) -> Table:
        raise NotImplementedError

    def _whole(self, name: str, parts: list[Table]) -> Table:
        return joined(parts)

    def _empty(self, name: str) -> Optional[Table]:
        return None

    @property
    def tables(self) -> list[str]:
        """The names of the tables that the file has."""
        if self._names is None:
            for _ in self.stream():
                pass
        return list(self._names or [])

    @property
    def damage(self) -> list[Damage]:
        """The damaged parts of the file; empty for an intact one. The first call decodes every row."""
        if not self._is_checked:
            for _ in self.stream(*self.tables):
                pass
            self._is_checked = True
        return list(self._damage)

    def stream(self, *names: str) -> Iterator[Table]:
        """Yields the rows of these tables chunk by chunk, in constant memory. Without names it only checks the chunks.

        It skips damaged chunks, and gives a `DamageWarning` at the end for those that were not known.
        """
        damage: list[Damage] = []
        seen: dict[str, None] = {}
        for chunk in self._container.chunks(damage):
            try:
                found = list(self._names_of(chunk))
                seen.update(dict.fromkeys(found))
                tables = [self._decode(chunk, name) for name in names if name in found]
            except MALFORMED as error:
                what = str(error) if isinstance(error, HitregError) else f"it is not valid ({error!r})"
                damage.append(Damage(chunk.offset, f"chunk {chunk.index}", what))
                continue
            yield from tables
        self._names = list(seen)
        new = [one for one in damage if one not in self._damage]
        self._damage += new
        if new:
            warnings.warn(f"{self.path}: {'; '.join(map(str, new))}", DamageWarning, stacklevel=3)
        for name in names:
            # A damaged chunk may have held the table.
            if not damage and name not in seen and self._empty(name) is None:
                raise self._absent(name)

    def _absent(self, name: str) -> Exception:
        if name in self.tables:
            return HitregError(f"{self.path}: no chunk of the table {name!r} is intact")
        return KeyError(f"{self.path} has no table {name!r}; it has {', '.join(self.tables) or 'none'}")

    def read(self, *names: str) -> dict[str, Table]:
        """Returns several tables in one pass over the file."""
        wanted = [name for name in dict.fromkeys(names) if name not in self._tables]
        if wanted:
            parts: dict[str, list[Table]] = {name: [] for name in wanted}
            for part in self.stream(*wanted):
                parts[part.name].append(part)
            for name in wanted:
                table = self._whole(name, parts[name]) if parts[name] else self._empty(name)
                if table is None:
                    raise self._absent(name)
                self._tables[name] = table
        return {name: self._tables[name] for name in names}

    def __getitem__(self, name: str) -> Table:
        return self.read(name)[name]

    def __contains__(self, name: str) -> bool:
        return name in self.tables

    def __repr__(self) -> str:
        return f"<hitreg.{type(self).__name__} {self.path}: {self.header.game}>"  # type: ignore[attr-defined]
