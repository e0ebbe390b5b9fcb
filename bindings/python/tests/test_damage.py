"""Cut, damaged and hostile files: intact chunks are read, and each damaged one is named with its offset."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import hitreg
import msgpack
import numpy as np
import pytest
import zstandard
from conftest import ROOT, Session
from hitreg import _trace
from hitreg._column import pack
from hitreg._container import ChunkSink, Container

LOG = ROOT / "fixtures/sessions/duel.hitlog"
TRACE = ROOT / "fixtures/compat/trace-v1.0.hittrace"
FUZZ = sorted(path for kind in ("logs", "traces", "packed") for path in (ROOT / "fixtures/fuzz" / kind).iterdir())


def frames_of(path: Path) -> list[tuple[int, int]]:
    """The start and end of each chunk."""
    data, at, found = path.read_bytes(), 0, []
    while data[at : at + 4] == b"\x28\xb5\x2f\xfd":
        start = zstandard.ZstdDecompressor().decompressobj()
        start.decompress(data[at:])
        end = len(data) - len(start.unused_data)
        found.append((at, end))
        at = end
    return found


def opened(data: bytes, folder: Path, name: str = "a.hitlog"):
    path = folder / name
    path.write_bytes(data)
    return (hitreg.open_log if name.endswith("hitlog") else hitreg.open_trace)(path)


def test_log_cut_in_the_middle(session: Session, tmp_path: Path) -> None:
    data, frames = LOG.read_bytes(), frames_of(LOG)
    start, end = frames[len(frames) // 2]
    log = opened(data[: (start + end) // 2], tmp_path)
    with pytest.warns(hitreg.DamageWarning, match=f"offset {start}: chunk {len(frames) // 2}: .* cut off"):
        rows = log["frames"].rows
    assert [one.offset for one in log.damage] == [start]
    # hitreg recovers the same rows.
    session.run("recover", tmp_path / "a.hitlog", "-o", tmp_path / "fixed.hitlog")
    assert rows == hitreg.open_log(tmp_path / "fixed.hitlog")["frames"].rows > 0


def test_log_without_its_end(tmp_path: Path) -> None:
    data, frames = LOG.read_bytes(), frames_of(LOG)
    log = opened(data[: frames[-1][0]], tmp_path)
    with pytest.warns(hitreg.DamageWarning, match="cut off here; everything before is intact"):
        assert log["frames"].rows == hitreg.open_log(LOG)["frames"].rows
    log = opened(data[: frames[-1][1]], tmp_path)
    with pytest.warns(hitreg.DamageWarning, match="all chunks are intact"):
        assert log["frames"].rows == hitreg.open_log(LOG)["frames"].rows


@pytest.mark.parametrize("path", [LOG, TRACE], ids=lambda path: path.suffix)
def test_every_flipped_bit_is_found(path: Path, tmp_path: Path) -> None:
    data, frames = path.read_bytes(), frames_of(path)
    whole = (hitreg.open_log if path == LOG else hitreg.open_trace)(path)
    names = ["frames"] if path == LOG else whole.tables
    chunks = len(list(whole.stream(*names)))
    numbers = np.random.default_rng(1)
    for at in numbers.integers(frames[0][1], len(data), 120):
        flipped = bytearray(data)
        flipped[at] ^= 1 << numbers.integers(8)
        file = opened(bytes(flipped), tmp_path, f"a{path.suffix}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", hitreg.DamageWarning)
            damage = file.damage
            assert damage, f"a bit at {at}"
            of = next((start for start, end in frames if start <= at < end), None)
            if of is not None:
                assert of in [one.offset for one in damage], f"{at}: {damage}"
            # All other chunks are read.
            assert len(list(file.stream(*names))) >= chunks - 1


def test_damaged_chunk_is_skipped(session: Session, tmp_path: Path) -> None:
    data, frames = bytearray(LOG.read_bytes()), frames_of(LOG)
    start, end = frames[3]
    data[end - 20] ^= 4
    log = opened(bytes(data), tmp_path)
    with pytest.warns(hitreg.DamageWarning):
        rows = log["frames"].rows
    assert [(one.offset, one.part) for one in log.damage] == [(start, "chunk 3")]
    session.run("recover", tmp_path / "a.hitlog", "-o", tmp_path / "fixed.hitlog")
    assert rows == hitreg.open_log(tmp_path / "fixed.hitlog")["frames"].rows


def test_damage_is_found_before_any_table_is_read(tmp_path: Path) -> None:
    # Chunks are intact, and their rows are not.
    for path, like, table, content in (
        (tmp_path / "a.hitlog", LOG, "frames", {"frames": [[0], [2], [b"\0\1"]]}),
        (tmp_path / "a.hittrace", TRACE, "x", {"table": "x", "rows": 2, "key": ["y"], "columns": []}),
    ):
        magic, read = path.suffix[1:], hitreg.open_log if like == LOG else hitreg.open_trace
        with path.open("wb") as out:
            sink = ChunkSink(out, magic, Container(like, magic).header)
            sink.chunk(content)
            sink.finish()
        file = read(path)
        assert table in file.tables
        with pytest.warns(hitreg.DamageWarning, match="chunk 1: "):
            assert list(file.stream(table)) == []
        assert [one.part for one in file.damage] == ["chunk 1"]
        file = read(path)
        with pytest.warns(hitreg.DamageWarning, match="chunk 1: "):
            assert [one.part for one in file.damage] == ["chunk 1"]
    with pytest.raises(hitreg.HitregError, match="no chunk of the table 'x' is intact"):
        file["x"]


def test_unknown_tables_are_refused() -> None:
    for file in (hitreg.open_log(LOG), hitreg.open_trace(TRACE)):
        with pytest.raises(KeyError, match="has no table 'frame'; it has .*ticks"):
            list(file.stream("frame"))
        with pytest.raises(KeyError, match="has no table 'frame'; it has .*ticks"):
            file["frame"]


def test_bytes_of_usercmds_and_fields_of_their_names_are_columns(tmp_path: Path) -> None:
    header = Container(LOG, "hitlog").header
    own = hitreg.Field("bytes", "u32")
    header.update(usercmd=[own.map()], usercmd_bytes=True)
    header["kinds"] = [["frames", ["seq", "at_us", "bytes", "extra_bytes", "extra"]]]
    with (tmp_path / "a.hitlog").open("wb") as out:
        sink = ChunkSink(out, "hitlog", header)
        counts = np.array([2])
        sink.chunk({"frames": [[0], [2], [*(pack(np.array(of), counts) for of in ([1, 2], [5, 6], [7, 8], [1, 2])), b"abc"]]})
        sink.finish()
    frames = hitreg.open_log(tmp_path / "a.hitlog")["frames"]
    assert frames["bytes"].tolist() == [7, 8] and frames["usercmd.bytes"].tolist() == [b"a", b"bc"]
    assert {"extra", "extra_bytes"}.isdisjoint(frames)
    for rows in (frames, frames.take(frames["seq"] > 9), frames.take(1)):
        assert str(rows.to_arrow().schema.field("usercmd.bytes").type) == "binary"
    assert frames.take(1)["bytes"].tolist() == [8]


def test_changed_and_missing_chunks_are_found_by_the_chain(tmp_path: Path) -> None:
    data, frames = LOG.read_bytes(), frames_of(LOG)
    start, end = frames[3]
    content = zstandard.ZstdDecompressor().decompress(data[start:end])
    again = zstandard.ZstdCompressor(level=1, write_checksum=True, write_content_size=True).compress(content)
    for new, part, what in ((again, "chunk 3", "although it unpacks"), (b"", "chunk 3", "chunk 4 is in its place")):
        assert new != data[start:end]
        log = opened(data[:start] + new + data[end:], tmp_path)
        with pytest.warns(hitreg.DamageWarning, match=what):
            assert log.damage[0].part == part and log.damage[0].offset == start


def test_log_without_a_seal(tmp_path: Path) -> None:
    subprocess.run([sys.executable, ROOT / "examples/write_log.py", tmp_path / "a.hitlog"], check=True)
    log = hitreg.open_log(tmp_path / "a.hitlog")
    assert not log.sealed and not log.damage
    assert log["frames"].rows == 200 and log["ticks"]["hash"].tolist() == list(range(1, 201))
    assert log["frames"]["forwardmove"][:2].tolist() == [320.0, -200.5]
    assert log.states("player")["fuel"][2] == -1.0


@pytest.mark.parametrize("what", ["empty", "text", "cut", "trace", "version"])
def test_what_is_no_log_is_refused(what: str, tmp_path: Path) -> None:
    frame = zstandard.ZstdCompressor(write_checksum=True, write_content_size=True)
    later = frame.compress(msgpack.packb({"magic": "hitlog", "format": [2, 0], "header": {}}))
    files = {
        "empty": b"",
        "text": b"[1, 2]" * 20,
        "cut": LOG.read_bytes()[:100],
        "trace": TRACE.read_bytes(),
        "version": later,
    }
    words = {
        "empty": "inside its header",
        "text": "it is neither a log nor a trace",
        "cut": "inside its header",
        "trace": "use open_trace",
        "version": "use a newer package",
    }
    with pytest.raises(hitreg.HitregError, match=words[what]):
        opened(files[what], tmp_path)


def hostile() -> dict[str, dict]:
    """Chunks of a few bytes that claim many rows or values."""
    ones, huge = bytes([0, 1, 2]), 0xFFFFFFFF
    frames = [[0], [huge], [ones] * 3]
    return {
        "rows": {"frames": frames},
        "series": {"frames": [list(range(100_000)), [700] * 100_000, [ones]]},
        "states": {"states": frames, "states.1": frames},
        "many tables": {
            "snapshots": [[0], [1], [ones] * 7],
            **{f"states{f'.{n}' if n else ''}": [[0], [400_000], [ones]] for n in range(200)},
        },
        "entities": {"snapshots": [[0], [1], [ones] * 7 + [bytes([0, 1]) + b"\xfe\xff\xff\xff\x1f"]]},
        "extra": {"snapshots": [[0], [1], [ones] * 9 + [b"\0\1\xfe\xff\xff\xff\x1f"]]},
        "heard": {"heard": [[0], [huge], [ones] * 6]},
        "types": {"frames": {"a": 1}, "ticks": 7, "states": [None, [1], "x"], "texts": 3},
        "negative": {"frames": [[0], [-5], [ones]]},
        "heard without a first": {"heard": [[0], [9], [ones] * 4 + [b"\0\1\x40", b"\0\1\x40", b"\0\1\2"]]},
        "heard from below 0": {"heard": [[0], [9], [ones] * 4 + [b"\0\1\2", b"\0\1\x40", b"\0\1\xfe\1"]]},
        "heard bits": {
            "heard": [[0], [100_000], [ones] * 4 + [b"\1\1\xc8\1\x40", b"\0\1\x40", b"\0\1\xfe\xff\xff\xff\x1f"]]
        },
        "nested": {"frames": [[]] * ((1 << 20) - 10)},
    }


@pytest.mark.parametrize("what", hostile())
def test_hostile_log_is_refused_in_little_memory(what: str, tmp_path: Path) -> None:
    path, header = tmp_path / "a.hitlog", Container(LOG, "hitlog").header
    header["classes"] = [{"name": f"c{n}", "fields": [hitreg.Field("x", "u32").map()]} for n in range(200)]
    with path.open("wb") as out:
        sink = ChunkSink(out, "hitlog", header)
        sink.chunk(hostile()[what])
        sink.finish()
    program = (
        "import hitreg, resource, sys, warnings\n"
        "warnings.simplefilter('ignore')\n"
        "log = hitreg.open_log(sys.argv[1])\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "names = 'frames ticks heard heard.usercmds snapshots snapshots.entities states states.199'\n"
        "for name in names.split():\n"
        "    list(log.stream(name))\n"
        "print(len(log.damage), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, path], capture_output=True, text=True, check=True, timeout=120
    )
    damage, kib = map(int, done.stdout.split())
    assert kib < 400 << 10, f"{kib >> 10} MiB"
    assert damage > 0


def test_runs_of_equal_values_have_all_rows() -> None:
    """Rows that a program other than hitreg's `replay -o` may have written."""

    def column(data: bytes) -> list[int]:
        map = {"name": "tick", "type": "u32", "transform": "runs", "data": data}
        return _trace.decode({"table": "t", "rows": 5, "columns": [map]})["tick"].tolist()

    run = [length.to_bytes(4, "little") + b"\7\0\0\0" for length in range(7)]
    assert column(run[2] + run[3]) == [7] * 5
    for wrong in (b"", run[2], run[6], run[5] + run[1], run[5][:-1], run[5] + b"\0"):
        with pytest.raises(hitreg.HitregError, match="its runs do not have 5 rows"):
            column(wrong)


@pytest.mark.parametrize("path", FUZZ, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_fuzzed_input(path: Path, tmp_path: Path) -> None:
    """Inputs that fuzzing of the Rust reader found: rows or an error, and nothing else."""
    for name in ("a.hitlog", "a.hittrace"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", hitreg.DamageWarning)
            try:
                file = opened(path.read_bytes(), tmp_path, name)
                for table in file.tables:
                    file[table]
            except hitreg.HitregError:
                pass


def test_streams_take_constant_memory(session: Session, tmp_path: Path) -> None:
    """A log of ten times the length takes no more memory."""
    program = (
        "import hitreg, resource, sys\n"
        "rows = sum(table.rows for table in hitreg.open_log(sys.argv[1]).stream('frames'))\n"
        "print(rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
    )
    sizes = []
    for seconds in (10, 600):
        ticks = np.arange(1, 60 * seconds + 1)
        path = tmp_path / f"{seconds}.hitlog"
        with hitreg.LogWriter(path, game="g", players=["a", "b"]) as log:
            for player in (0, 1):
                turn = np.random.default_rng(0).random(len(ticks))
                log.write("frames", {"player": player, "seq": ticks, "at_us": ticks * 16_000, "yaw": turn})
        done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True)
        rows, kib = map(int, done.stdout.split())
        assert rows == 120 * seconds
        sizes.append(kib)
    assert sizes[1] - sizes[0] < 8 << 10, sizes
