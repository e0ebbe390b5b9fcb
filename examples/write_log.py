#!/usr/bin/env python3
"""Writes a log without the library: two seconds of one player, in the simplest packing that docs/format.md describes.

    examples/write_log.py LOG

It needs the packages msgpack and zstandard.
"""

import struct
import sys

import msgpack
import zstandard


def varint(number):
    data = b""
    while number > 127:
        data, number = data + bytes([number & 127 | 128]), number >> 7
    return data + bytes([number])


def column(values, form=0):
    """Packs signed 64-bit numbers: order 0, packing 1. `form` is the meaning of the numbers."""
    zigzag = (value << 1 if value >= 0 else (-value << 1) - 1 for value in values)
    return bytes([form << 4 | 1 << 2]) + varint(1) + b"".join(map(varint, zigzag))


def singles(values):
    bits = (struct.unpack("<i", struct.pack("<f", value))[0] for value in values)
    return column([number if number >= 0 else -(number + 2**31) - 1 for number in bits], form=3)


def doubles(values):
    bits = (struct.unpack("<q", struct.pack("<d", value))[0] for value in values)
    return column([number if number >= 0 else -(number + 2**63) - 1 for number in bits], form=5)


def chunk(out, content):
    compressor = zstandard.ZstdCompressor(write_checksum=True, write_content_size=True)
    out.write(compressor.compress(msgpack.packb(content)))


def field(name, kind, **more):
    return {"name": name, "kind": kind, "scope": "movement", **more}


HEADER = {
    "game": "mygame",
    "rules": b"",
    "map": "",
    "seed": 0,
    "settings": [["server.tick_hz", "100"]],
    "preset": None,
    "players": [{"name": "p0", "recorded": True}],
    "origin": "live",
    "classes": [
        {"name": "player", "fields": [field("origin.x", "f32", meaning="position"), field("fuel", "f64")]},
    ],
    "usercmd": [field("msec", "u32"), field("forwardmove", "f32")],
    "kinds": [["frames", ["seq", "at_us", "msec", "forwardmove"]], ["ticks", ["tick", "at_us", "hashed", "hash"]]],
}


def main():
    with open(sys.argv[1], "wb") as out:
        chunk(out, {"magic": "hitlog", "format": [1, 0], "header": HEADER})
        for second in range(2):
            ticks = range(100 * second + 1, 100 * second + 101)
            times = [10_000 * tick for tick in ticks]
            walks = [320.0 if tick % 2 else -200.5 for tick in ticks]
            hashes = struct.pack("<100Q", *ticks)
            places, fuel = [tick * 0.25 for tick in ticks], [-tick / 3 for tick in ticks]
            chunk(out, {
                "index": second + 1,
                "frames": [[0], [100], [column(ticks), column(times), column([10] * 100), singles(walks)]],
                "ticks": [[0], [100], [column(ticks), column(times), column([1] * 100), hashes]],
                "states": [[0], [100], [column(ticks), singles(places), doubles(fuel)]],
            })
        chunk(out, {"index": 3, "end": True})


if __name__ == "__main__":
    main()
