#!/usr/bin/env python3
"""A build of pucks in Python, written from docs/format.md alone.

    examples/pucks.py replay LOG -o TRACE

It moves the pucks of a log by the usercmds that the log says were run, with the arithmetic of examples/pucks/game.rs, and
writes what it knows: the tables `ticks`, `bodies` and `executed`, without what only a server that judges shots knows. It
needs the packages msgpack and zstandard.

    hitreg diff game.hitlog --a target/debug/examples/pucks \\
        --b examples/pucks.py --overlap
"""

import argparse
import struct
import sys

import msgpack
import zstandard

REFIRE_MS = 250
ATTACK = 1
# The values of `how`, from docs/format.md.
RUN, STOOD_IN = 0, 1
HOW = ["run", "stood_in", "missing", "late", "over_budget"]
# Exit codes: untestable input, and unreadable input.
UNTESTABLE, TROUBLE = 125, 128

# The columns that this build reads of each record kind. It needs no column that is packed relative to another.
WANTED = {
    "frames": ["seq", "msec", "pitch", "yaw", "roll", "forwardmove", "sidemove", "upmove", "buttons"],
    "executed": ["command", "tick", "how"],
    "ticks": ["tick", "at_us"],
}


def single(value):
    """The nearest IEEE 754 single. With this rounding of each sum and product, results equal those in singles."""
    return struct.unpack("<f", struct.pack("<f", value))[0]


def from_bits(bits):
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def unpack(data, series, references=None):
    """The values of a packed column; `series` holds the number of rows of each series. Singles and doubles come as bits."""
    rows, pos = sum(series), 0
    if not data:
        return [0] * rows

    def wrap(value):
        return (value + 2**63) % 2**64 - 2**63

    def varint():
        nonlocal pos
        value = shift = 0
        while True:
            byte, pos = data[pos], pos + 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def unzigzag(number):
        return number >> 1 if number & 1 == 0 else -(number >> 1) - 1

    code, pos = data[0], 1
    order, packing, form = code & 3, code >> 2 & 3, code >> 4
    shift = 0
    if form in (2, 4):
        shift, pos = struct.unpack_from("b", data, pos)[0], pos + 1
    unit, firsts, first = varint(), [], 0
    for rows_of_one in series if order else []:
        if rows_of_one:
            first = wrap(first + unzigzag(varint()))
            firsts.append(first)
    count = rows - len(firsts)
    if packing == 0:
        rest = [unzigzag(varint())] * count
    elif packing == 1:
        rest = [unzigzag(varint()) for _ in range(count)]
    elif packing == 2:
        width, pos = data[pos], pos + 1
        planes = [data[pos + plane * count : pos + (plane + 1) * count] for plane in range(width)]
        rest = [unzigzag(sum(plane[row] << 8 * p for p, plane in enumerate(planes))) for row in range(count)]
    else:
        places, at = [], -1
        for gap in [varint() for _ in range(varint())]:
            at += gap + 1
            places.append(at)
        rest = [0] * count
        for place in places:
            rest[place] = unzigzag(varint())
    residuals = iter([wrap(residual * unit) for residual in rest])
    values = []
    if order == 0:
        values = list(residuals)
    else:
        for rows_of_one, value in zip(filter(None, series), firsts):
            values.append(value)
            step = 0
            for _ in range(rows_of_one - 1):
                step = next(residuals) if order == 1 else wrap(step + next(residuals))
                value = wrap(value + step)
                values.append(value)
    if form == 1:
        values = [wrap(value + reference) for value, reference in zip(values, references)]
    elif form == 2:
        values = [struct.unpack("<I", struct.pack("<f", value / 2.0**shift))[0] for value in values]
    elif form == 3:
        values = [value if value >= 0 else 0x80000000 + (-value - 1) for value in values]
    elif form == 4:
        values = [struct.unpack("<Q", struct.pack("<d", value / 2.0**shift))[0] for value in values]
    elif form == 5:
        values = [value if value >= 0 else 2**63 + (-value - 1) for value in values]
    return values


def chunks(path):
    """The MessagePack map of each chunk. zstd's checksum detects changes; a truncated chunk ends too early."""
    with open(path, "rb") as file:
        data = file.read()
    while data[:4] == b"\x28\xb5\x2f\xfd":
        decompressor = zstandard.ZstdDecompressor().decompressobj()
        content = decompressor.decompress(data)
        if not decompressor.eof:
            raise ValueError("the log is cut off")
        data = decompressor.unused_data
        yield msgpack.unpackb(content, strict_map_key=False)


def records(part, kind, declared):
    """The records of a kind in a chunk: the player of each, and the requested columns by name. Other columns are
    ignored, because a later version may add some."""
    if kind not in part:
        return
    ids, rows, columns = part[kind]
    names = WANTED[kind]
    # Columns missing at the end of a table are zeros.
    packed = dict(zip(declared[kind], columns))
    values = [unpack(packed.get(name, b""), rows) for name in names]
    players = [player for player, count in zip(ids, rows) for _ in range(count)]
    for player, *row in zip(players, *values):
        yield player, dict(zip(names, row))


def read_log(path):
    """The header, the usercmds (player, number) -> input, the executed usercmds of each tick, and the ticks."""
    parts = chunks(path)
    first = next(parts, {})
    if first.get("magic") != "hitlog" or first["format"][0] != 1:
        raise ValueError("it is no hitlog of format 1")
    declared = dict(first["header"]["kinds"])
    commands, executed, ticks = {}, {}, []
    whole = False
    for part in parts:
        whole = whole or part.get("end", False)
        for player, frame in records(part, "frames", declared):
            commands[player, frame["seq"]] = frame
        for player, done in records(part, "executed", declared):
            executed.setdefault(done["tick"], []).append((player, done["command"], done["how"]))
        for _, tick in records(part, "ticks", declared):
            ticks.append((tick["tick"], tick["at_us"]))
    if not whole:
        raise ValueError("the log is cut off")
    return first["header"], commands, executed, ticks


class Puck:
    def __init__(self, number):
        self.origin = [number % 4 * 192.0 - 288.0, number // 4 * 192.0 - 288.0]
        self.velocity = [0.0, 0.0]
        self.angles = [0.0, 0.0, 0.0]
        self.refire_ms = 0
        self.last_input = None

    def step(self, rules, command):
        """Runs one usercmd, in singles."""
        self.angles = [from_bits(command[name]) for name in ("pitch", "yaw", "roll")]
        seconds = single(command["msec"] / 1000.0)
        share = min(single(seconds * rules["grip_per_s"]), 1.0)
        edge = rules["edge_units"]
        for axis, name in enumerate(("forwardmove", "sidemove")):
            at, speed = self.origin[axis], self.velocity[axis]
            speed = single(speed + single(single(from_bits(command[name]) - speed) * share))
            at = single(at + single(speed * seconds))
            if at > edge:
                at, speed = single(single(edge + edge) - at), single(speed * -0.5)
            elif at < -edge:
                at, speed = single(single(-edge - edge) - at), single(speed * -0.5)
            self.origin[axis], self.velocity[axis] = at, speed
        self.refire_ms = max(0, self.refire_ms - command["msec"])
        if command["buttons"] & ATTACK and self.refire_ms == 0:
            self.refire_ms = REFIRE_MS


def replay(header, commands, executed, ticks):
    """The rows of `ticks`, `bodies` and `executed`."""
    rules = msgpack.unpackb(header["rules"])
    pucks = [Puck(number) for number in range(len(header["players"]))]
    bodies, ran = [], []
    for tick, _ in ticks:
        for player, number, how in executed.get(tick, []):
            puck = pucks[player]
            ran.append((player, number, tick, how))
            if how == RUN:
                puck.last_input = commands[player, number]
                puck.step(rules, puck.last_input)
            elif how == STOOD_IN and puck.last_input:
                puck.step(rules, puck.last_input)
        for number, puck in enumerate(pucks):
            bodies.append((tick, number, *puck.origin, *puck.velocity, *puck.angles, puck.refire_ms))
    return ticks, bodies, ran


def table(index, name, rows, columns):
    """A chunk of raw columns; `columns` has the name, type and struct letter of each."""
    values = list(zip(*rows)) or [()] * len(columns)
    packed = []
    for column, (label, kind, letter) in zip(values, columns):
        packed.append({"name": label, "type": kind, "data": struct.pack(f"<{len(rows)}{letter}", *column)})
        if kind == "name":
            packed[-1]["names"] = HOW
    return {"index": index, "table": name, "rows": len(rows), "columns": packed}


def write_trace(path, header, ticks, bodies, ran):
    first = {
        "magic": "hittrace",
        "format": [1, 0],
        "written_by": "pucks.py",
        "header": {"game": header["game"], "mode": "closed", "log_digest": "", "settings": header["settings"]},
    }
    floats = ["origin.x", "origin.y", "velocity.x", "velocity.y", "viewangles.x", "viewangles.y", "viewangles.z"]
    body_columns = [("tick", "u32", "I"), ("entity", "u32", "I")]
    body_columns += [(name, "f32", "f") for name in floats] + [("refire_ms", "u32", "I")]
    ran_columns = [("player", "u32", "I"), ("command", "u32", "I"), ("tick", "u32", "I"), ("how", "name", "B")]
    parts = [
        first,
        table(1, "ticks", ticks, [("tick", "u32", "I"), ("at_us", "i64", "q")]),
        table(2, "bodies", bodies, body_columns),
        table(3, "executed", ran, ran_columns),
        {"index": 4, "end": True},
    ]
    with open(path, "wb") as out:
        for part in parts:
            compressor = zstandard.ZstdCompressor(write_checksum=True, write_content_size=True)
            out.write(compressor.compress(msgpack.packb(part)))


def main():
    parser = argparse.ArgumentParser(description="A build of pucks in Python.")
    replayed = parser.add_subparsers(dest="command", required=True).add_parser("replay")
    replayed.add_argument("log")
    replayed.add_argument("-o", "--output", required=True)
    arguments = parser.parse_args()
    try:
        header, commands, executed, ticks = read_log(arguments.log)
    except (OSError, ValueError, zstandard.ZstdError) as error:
        print(f"{arguments.log}: {error}", file=sys.stderr)
        return TROUBLE
    if header["game"] != "pucks":
        print(f"this build plays pucks, and the log is of {header['game']}", file=sys.stderr)
        return UNTESTABLE
    write_trace(arguments.output, header, *replay(header, commands, executed, ticks))
    return 0


if __name__ == "__main__":
    sys.exit(main())
