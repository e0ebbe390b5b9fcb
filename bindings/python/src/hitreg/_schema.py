"""Headers of logs and traces, and the columns of record kinds: "Header" and "Records" in docs/format.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional, Union

from ._container import MALFORMED, HitregError

MAX_PLAYERS = 200
# The most bytes of different texts in a session, of which each takes some more than its own.
MAX_TEXT_BYTES, TEXT_OVERHEAD = 4 << 20, 64
FIELD_KINDS = ("f32", "f64", "i32", "u32", "i64", "u64", "bool", "text")
USUAL_UNITS = {"position": "units", "velocity": "units/s", "angle": "degrees", "time": "ms"}


@dataclass(frozen=True)
class Field:
    """A field of an entity class or of a usercmd, or a column of a custom kind."""

    name: str
    kind: str
    scope: str = "status"
    meaning: Optional[str] = None
    own_unit: str = ""

    @property
    def unit(self) -> str:
        return self.own_unit or USUAL_UNITS.get(self.meaning or "", "")

    @classmethod
    def read(cls, map: Mapping[str, Any]) -> Field:
        if map["kind"] not in FIELD_KINDS:
            raise HitregError(f"field {map['name']!r} has the kind {map['kind']!r}")
        return cls(str(map["name"]), map["kind"], map["scope"], map.get("meaning"), map.get("own_unit", ""))

    def map(self) -> dict[str, Any]:
        if self.kind not in FIELD_KINDS:
            raise HitregError(f"field {self.name!r} has the kind {self.kind!r}; use one of {', '.join(FIELD_KINDS)}")
        more = {"meaning": self.meaning, "own_unit": self.own_unit}
        known = {"name": self.name, "kind": self.kind, "scope": self.scope}
        return {**known, **{key: value for key, value in more.items() if value}}


@dataclass(frozen=True)
class EntityClass:
    """A kind of entity, and the fields of its states."""

    name: str
    fields: list[Field]


@dataclass(frozen=True)
class Player:
    """A player. Its number is its index in the header's list."""

    name: str
    recorded: bool = True


@dataclass(frozen=True)
class Side:
    """The recorded side of a session: one client's, or the server's if `player` is `None`."""

    session: int
    player: Optional[int]


@dataclass(frozen=True)
class LogHeader:
    """The header of a log."""

    game: str
    rules: bytes = b""
    map: str = ""
    seed: int = 0
    settings: dict[str, str] = field(default_factory=dict)
    preset: Optional[str] = None
    players: list[Player] = field(default_factory=list)
    origin: Union[str, dict[str, Any]] = "live"
    side: Optional[Side] = None
    classes: list[EntityClass] = field(default_factory=list)
    usercmd: list[Field] = field(default_factory=list)
    kinds: dict[str, list[str]] = field(default_factory=dict)
    columns: dict[str, list[Field]] = field(default_factory=dict)
    usercmd_bytes: bool = False

    @classmethod
    def read(cls, map: Mapping[str, Any]) -> LogHeader:
        try:
            side = map.get("side")
            header = cls(
                map["game"],
                bytes(map["rules"]),
                map["map"],
                map["seed"],
                dict(map["settings"]),
                map["preset"],
                [Player(player["name"], player["recorded"]) for player in map["players"]],
                map["origin"],
                side and Side(side["session"], side["player"]),
                [EntityClass(of["name"], list(_fields(of["fields"]))) for of in map["classes"]],
                list(_fields(map["usercmd"])),
                {kind: [str(name) for name in names] for kind, names in map["kinds"]},
                {kind: list(_fields(fields)) for kind, fields in map.get("columns", [])},
                bool(map.get("usercmd_bytes")),
            )
        except MALFORMED as error:
            raise HitregError(f"its header is not valid ({error!r})") from None
        if len(header.players) > MAX_PLAYERS:
            raise HitregError(f"it has {len(header.players)} players; a session has at most {MAX_PLAYERS}")
        return header


def _fields(maps: Sequence[Mapping[str, Any]]) -> Sequence[Field]:
    return [Field.read(map) for map in maps]


@dataclass(frozen=True)
class TraceHeader:
    """The header of a trace."""

    game: str
    mode: str = "closed"
    log_digest: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    part: Optional[tuple[int, int]] = None
    session: Optional[dict[str, Any]] = None

    @classmethod
    def read(cls, map: Mapping[str, Any]) -> TraceHeader:
        try:
            part = map.get("part")
            settings = dict(map["settings"])
            return cls(map["game"], map["mode"], map["log_digest"], settings, part and tuple(part), map.get("session"))
        except MALFORMED as error:
            raise HitregError(f"its header is not valid ({error!r})") from None


@dataclass(frozen=True)
class KindColumn:
    """A column of a record kind. `relative` names its reference, and `base` the kind that has the reference.

    A column of `names` holds indices. An `optional` one is stored plus one, and -1 is none.
    """

    name: str
    kind: str
    unit: str = ""
    relative: str = ""
    base: str = ""
    names: tuple[str, ...] = ()
    optional: bool = False


def _column(text: str) -> KindColumn:
    """Reads `name[?] type[(unit)]`, `name first|second`, and `name <reference` or `name <kind.reference`."""
    name, _, rest = text.strip().partition(" ")
    if name.endswith("_us"):
        base, _, relative = rest.lstrip("<").rpartition(".")
        return KindColumn(name, "i64", "µs", relative, base)
    if "|" in rest:
        return KindColumn(name, "u32", names=tuple(rest.split("|")))
    kind, _, relative = rest.partition(" <")
    kind, _, unit = kind.rstrip(")").partition("(")
    return KindColumn(name.rstrip("?"), kind, unit, relative, optional=name.endswith("?"))


def _columns(text: str) -> list[KindColumn]:
    return [_column(column) for column in text.split(",")]


_SHOT = """command u32, at_us, shot u32, reason hit|hit the world|missed|already dead|launched, target? i32,
    hitgroup u32, damage i32(health points), rewound_us, impact bool, pellets? i32, weapon text"""
_USERCMD = """lerp_ms u32(ms), msec u32(ms), pitch f32(degrees), yaw f32(degrees), roll f32(degrees),
    forwardmove f32(units/s), sidemove f32(units/s), upmove f32(units/s), buttons u32, impulse u32"""
# The columns of each kind with one number for each row.
KINDS = {
    "frames": _columns("seq u32, at_us, server_time_us <at_us, " + _USERCMD),
    "predicted": _columns(_SHOT),
    "sent": _columns("number u32, newest u32, at_us <frames.newest, count u32, ack u32, bytes u32"),
    "reached": _columns("number u32, at_us <sent.number"),
    "heard": _columns("number u32, at_us <reached.number, ack u32, received_before u32, newest u32, usercmds u32"),
    "executed": _columns("command u32, tick u32, how run|stood_in|missing|late|over_budget"),
    "judged": _columns(_SHOT),
    "presence": _columns("tick u32, at_us, change joined|left"),
    "snapshots": _columns("""seq u32, tick u32 <seq, at_us, server_time_us <at_us, ack u32, bytes u32, choked u32,
        entities u32, effects u32, extra_bytes u32, helper u32, warnings u32"""),
    "received": _columns("number u32, at_us <snapshots.number"),
    "ticks": _columns("tick u32, at_us, hashed bool"),
    "damage": _columns("""tick u32, at_us, victim u32, attacker? i32, amount i32(health points), armour? i32, weapon text,
        forced bool, force_x f32(units/s), force_y f32(units/s), force_z f32(units/s)"""),
    "gaps": _columns("from_us, at_us, player? i32, why damaged|overrun|paused|disconnected|began_late"),
}
USERCMD = [Field(of.name, of.kind, "movement", own_unit=of.unit) for of in _columns(_USERCMD)]
# The columns of lists, and those that only a list's reader needs.
HEARD_LIST = _columns("seq u32, at_us, server_time_us <at_us, " + _USERCMD)
SNAPSHOT_LISTS = {
    "entities": _columns("entity u32"),
    "effects": _columns("""effect_kind u32, effect_entity u32, effect_predictable bool, effect_x f32(units),
        effect_y f32(units), effect_z f32(units)"""),
    "warnings": _columns("warning_command u32, warning_difference i32(ticks)"),
}
LIST_COLUMNS = {
    "heard": {"fresh", *(f"usercmd_{of.name}" for of in HEARD_LIST)},
    "snapshots": {"extra", *(of.name for columns in SNAPSHOT_LISTS.values() for of in columns)},
    "ticks": {"hash"},
}
# Kinds of the whole session, in one series 0.
SESSION_KINDS = ("ticks", "damage", "gaps")
