"""Reads hitreg's logs and traces as tables, and writes them.

log = hitreg.open_log("session.hitlog")
frames = log["frames"].to_pandas()
"""

from ._container import Damage, DamageWarning, HitregError
from ._log import Log, open_log
from ._schema import EntityClass, Field, LogHeader, Player, Side, TraceHeader
from ._table import Column, Table
from ._trace import Trace, open_trace
from ._write import LogWriter, TraceWriter

__all__ = [
    "Column",
    "Damage",
    "DamageWarning",
    "EntityClass",
    "Field",
    "HitregError",
    "Log",
    "LogHeader",
    "LogWriter",
    "Player",
    "Side",
    "Table",
    "Trace",
    "TraceHeader",
    "TraceWriter",
    "open_log",
    "open_trace",
]
