"""Which games, names and settings a log can have: the rules of hitreg's recorder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ._container import HitregError
from ._schema import KINDS, MAX_PLAYERS, Field

MAX_RULES_BYTES = 11 << 20
# Keys of a chunk, and the beginnings of the names of states.
CHUNK_KEYS = ("index", "before", "end", "texts", "keyframe", "states")
# Tables of traces besides those that are kinds of logs, and `corrections` and `errors`, which a game may record.
TRACE_TABLES = ("bodies", "views", "shots", "effects", "variables", "packets", "usercmd_bytes")
# The first words of the columns of usercmds in logs and traces.
FRAMES_COLUMNS = {
    *(of.name for of in KINDS["frames"]),
    *("player", "command", "lerp_msec", "ran", "first_effects", "has_body", "drawn", "own"),
}


def setting_text(value: object) -> str:
    """Returns a setting's value as files hold it."""
    return str(value).lower() if isinstance(value, (bool, np.bool_)) else str(value)


def check_description(
    game: str,
    players: Sequence[str],
    settings: Mapping[str, object],
    classes: Mapping[str, Sequence[Field]],
    usercmd_fields: Sequence[Field],
    kinds: Mapping[str, Sequence[Field]],
    map: str,
    seed: int,
    rules: bytes,
) -> None:
    """Raises `HitregError` for a description that hitreg's recorder refuses."""
    if not isinstance(game, str) or not game or not isinstance(map, str):
        raise HitregError("the game and the map need names: texts")
    if isinstance(players, str) or len(players) == 0 or not all(isinstance(name, str) for name in players):
        raise HitregError("a session needs a list of players, each with a text as name")
    if len(players) > MAX_PLAYERS:
        raise HitregError(f"a session has at most {MAX_PLAYERS} players")
    if not 0 <= seed < 1 << 64:
        raise HitregError(f"the seed is {seed}, and it must be from 0 to 2^64 - 1")
    if len(rules) > MAX_RULES_BYTES:
        raise HitregError(f"the rules have {len(rules)} bytes, and a log takes at most {MAX_RULES_BYTES}")
    for key, value in settings.items():
        if not isinstance(key, str) or not all(word.isprintable() and "".join(word.split()) == word != "" for word in key.split(".")):
            raise HitregError(f"a setting is called {key!r}: its name needs words with dots between them")
        if key == "server.tick_hz" and not 1 <= _number(value) <= 1000:
            raise HitregError(f"the tick rate is {value}, and it must be from 1 to 1000 Hz")
    for name, fields in classes.items():
        # `viewer` is a column of states here, although not in the file.
        _check_names(f"class {name!r}", name, fields, ("tick", "entity", "viewer"))
    taken = [of.name for of in usercmd_fields if of.name.partition(".")[0] in FRAMES_COLUMNS]
    _check_names("a usercmd", "usercmd", usercmd_fields, taken)
    for name, fields in kinds.items():
        if name in KINDS or name in TRACE_TABLES or name.partition(".")[0] in (*CHUNK_KEYS, "bodies"):
            raise HitregError(f"no custom kind can have the name {name!r}")
        _check_names(f"kind {name!r}", name, fields, ("at_us", "series"))


def _check_names(owner: str, name: str, fields: Iterable[Field], taken: Iterable[str]) -> None:
    names = [field.name for field in fields]
    if "" in (name, *names):
        raise HitregError(f"{owner} or one of its fields has an empty name")
    known = {*taken}
    for of in names:
        if of in known:
            raise HitregError(f"{owner} has two columns of the name {of!r}, or hitreg adds one: rename the field")
        known.add(of)


def _number(value: object) -> float:
    try:
        return float(str(value))
    except ValueError:
        return float("nan")
