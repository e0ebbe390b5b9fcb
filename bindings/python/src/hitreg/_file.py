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
        self._damage: Optional[list[Damage]] = None
        self._names: list[str] = []
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

    def _scan(self) -> None:
        if self._damage is None:
            for _ in self.stream():
                pass

    @property
    def tables(self) -> list[str]:
        """The names of the tables that the file has."""
        self._scan()
        return list(self._names)

    @property
    def damage(self) -> list[Damage]:
        """The damaged parts of the file; empty for an intact one."""
        self._scan()
        return list(self._damage or [])

    def stream(self, *names: str) -> Iterator[Table]:
        """Yields the rows of these tables chunk by chunk, in constant memory. Without names it only checks the file.

        It skips damaged chunks, and gives a `DamageWarning` at the end.
        """
        damage: list[Damage] = []
        seen: dict[str, None] = {}
        for chunk in self._container.chunks(damage):
            try:
                found = list(self._names_of(chunk))
                tables = [self._decode(chunk, name) for name in names if name in found]
            except MALFORMED as error:
                what = str(error) if isinstance(error, HitregError) else f"it is not valid ({error!r})"
                damage.append(Damage(chunk.offset, f"chunk {chunk.index}", what))
                continue
            seen.update(dict.fromkeys(found))
            yield from tables
        self._names = list(seen)
        if damage and self._damage is None:
            warnings.warn(f"{self.path}: {'; '.join(map(str, damage))}", DamageWarning, stacklevel=3)
        known = self._damage or []
        self._damage = known + [one for one in damage if one not in known]

    def read(self, *names: str) -> dict[str, Table]:
        """Returns several tables in one pass over the file."""
        wanted = [name for name in dict.fromkeys(names) if name not in self._tables]
        if wanted:
            parts: dict[str, list[Table]] = {name: [] for name in wanted}
            for table in self.stream(*wanted):
                parts[table.name].append(table)
            for name in wanted:
                table_or_none = self._whole(name, parts[name]) if parts[name] else self._empty(name)
                if table_or_none is None:
                    raise KeyError(f"{self.path} has no table {name!r}; it has {', '.join(self._names) or 'none'}")
                self._tables[name] = table_or_none
        return {name: self._tables[name] for name in names}

    def __getitem__(self, name: str) -> Table:
        return self.read(name)[name]

    def __contains__(self, name: str) -> bool:
        return name in self.tables

    def __repr__(self) -> str:
        return f"<hitreg.{type(self).__name__} {self.path}: {self.header.game}>"  # type: ignore[attr-defined]
