"""The recordings of the grid: a pairwise covering design, a few large sessions, and sessions of other games.

A recording is a `Recording` value. `make` turns it into a log with the program that owns the game.
Every random choice comes from a fixed seed, so the list is the same on each run.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field
from pathlib import Path

from runner import Run, Runner

REPOSITORY = Path(__file__).resolve().parents[2]
SHARED_DATA = REPOSITORY.parent / "shared" / "data"

PLAYERS = [1, 2, 5, 16, 32, 64]
SECONDS = [3, 5, 12, 20, 60]
PRESETS = ["dumb-client", "quakeworld", "quake3", "half-life", "nereids"]
LINKS = {
    "clean": "",
    "delay-50": "delay_ms = 50.0\n",
    "jitter-loss": "delay_ms = 40.0\njitter = { exponential = 5.0 }\nloss = { random = 0.01 }\n",
    "bursts": (
        "delay_ms = 60.0\njitter = { uniform = 10.0 }\nloss = { burst = { enter = 0.02, leave = 0.3 } }\n"
        "duplicate = 0.03\nreorder = 0.05\nreorder_ms = 25.0\n"
    ),
    "narrow": "delay_ms = 30.0\nrate_bytes_per_s = 6000.0\n",
}
# Settings within the bounds of `hitreg settings`, at or near the limits.
ODD_SETTINGS: list[dict[str, str]] = [
    {},
    {"server.tick_hz": "1", "server.update_hz": "1"},
    {"server.tick_hz": "10", "server.update_hz": "20"},
    {"server.tick_hz": "1000", "server.update_hz": "60"},
    {"client.cmd_hz": "1000"},
    {"client.cmd_hz": "1", "server.update_hz": "1"},
    {"wire.sizes": "nominal", "client.redundancy": "1", "server.on_lost_command": "skip"},
    {"server.rate_bytes_per_s": "2000", "wire.sizes": "datagrams"},
    {"interpolation.lerp_ms": "0", "client.frames": "hitches"},
    {"prediction.mode": "off"},
]
KEYFRAMES = [0, 2]
MAPS = ["courtyard", "orchard"]
AXES: list[list] = [PLAYERS, SECONDS, PRESETS, list(LINKS), list(range(len(ODD_SETTINGS))), KEYFRAMES, MAPS]


@dataclass(frozen=True)
class Recording:
    """One log of the grid, before it is recorded."""

    name: str
    # synth: the arena. pucks: the example game. sides: one server and its clients, merged. side: the server's log alone.
    # c-recorder: the C ABI's example. qwd, quake3-udp: imports.
    kind: str = "synth"
    players: int = 4
    seconds: int = 5
    preset: str = "half-life"
    link: str = "delay-50"
    settings: dict[str, str] = field(default_factory=dict, hash=False)
    keyframes: int = 0
    map: str = "courtyard"
    seed: int = 1
    source: str = ""
    # Only the commands of `grid.LARGE_COMMANDS` run on a large recording.
    is_large: bool = False

    @property
    def cost(self) -> float:
        """A rough measure of the work of one replay: player pairs times steps of client and server."""
        hz = max(float(self.settings.get(key, 64)) for key in ("client.cmd_hz", "server.tick_hz"))
        return self.players * (2 + self.players / 4) * self.seconds * max(hz, 64) / 64

    @property
    def is_open(self) -> bool:
        """Whether the log has no server to replay, so that only its clients run (open loop)."""
        return self.kind in ("qwd", "quake3-udp")

    @property
    def is_small(self) -> bool:
        """Whether a CI sample may use the recording."""
        return not self.is_large and self.cost < 400


def is_allowed(case: tuple) -> bool:
    """Whether a combination is cheap enough for the grid."""
    players, seconds, _, _, odd, _, _ = case
    return Recording("", players=players, seconds=seconds, settings=ODD_SETTINGS[odd]).cost <= 4000


def pairs_of(case: tuple) -> set[tuple]:
    """All pairs of (axis, value) of a combination."""
    return set(itertools.combinations(enumerate(case), 2))


def pairwise(seed: int = 36) -> list[tuple]:
    """A covering design: each allowed pair of values of two axes occurs in at least one combination."""
    rng = random.Random(seed)
    cheap = [min(axis) if axis is PLAYERS or axis is SECONDS else axis[0] for axis in AXES]
    missing: set[tuple] = set()
    for (i, a), (j, b) in itertools.combinations(enumerate(AXES), 2):
        for pair in itertools.product(a, b):
            probe = list(cheap)
            probe[i], probe[j] = pair
            if is_allowed(tuple(probe)):
                missing.add(((i, pair[0]), (j, pair[1])))
    cases = []
    while missing:
        best: tuple[int, tuple] | None = None
        for _ in range(60):
            case = [rng.choice(axis) for axis in AXES]
            for index, value in rng.choice(sorted(missing, key=repr)):
                case[index] = value
            if not is_allowed(tuple(case)):
                case[0], case[1] = 2, 3
            gain = len(pairs_of(tuple(case)) & missing)
            if is_allowed(tuple(case)) and (best is None or gain > best[0]):
                best = (gain, tuple(case))
        if best is None or best[0] == 0:
            # The last pairs: each with cheap values on the other axes.
            (i, a), (j, b) = min(missing, key=repr)
            case = list(cheap)
            case[i], case[j] = a, b
            best = (1, tuple(case))
        cases.append(best[1])
        missing -= pairs_of(best[1])
    return cases


def recordings() -> list[Recording]:
    """The whole grid: synthetic sessions first, then large ones, then other games and imports."""
    found = []
    for number, (players, seconds, preset, link, odd, keyframes, level) in enumerate(pairwise()):
        found.append(
            Recording(
                f"s{number:02}", "synth", players, seconds, preset, link, ODD_SETTINGS[odd], keyframes, level, number + 1
            )
        )
    found += [
        Recording("large-16x60", players=16, seconds=60, link="delay-50", is_large=True),
        Recording("large-32x20", players=32, seconds=20, link="jitter-loss", is_large=True),
        Recording("large-64x20", players=64, seconds=20, link="jitter-loss", preset="quake3", is_large=True),
        Recording("large-4x600", players=4, seconds=600, link="bursts", keyframes=10, is_large=True),
        Recording("large-2x120-1000hz", players=2, seconds=120, settings={"client.cmd_hz": "1000"}, is_large=True),
        Recording("pucks-6x5", "pucks", players=6, seconds=5),
        Recording("pucks-16x20", "pucks", players=16, seconds=20, link="jitter-loss", preset="quake3"),
        Recording("pucks-2x60", "pucks", players=2, seconds=60, link="bursts", preset="nereids", keyframes=10),
        Recording("merged-3x5", "sides", players=3, seconds=5),
        Recording("merged-8x20", "sides", players=8, seconds=20),
        Recording("side-3x5", "side", players=3, seconds=5),
        Recording("client-side-3x5", "client-side", players=3, seconds=5),
        Recording("recorder-busy", "c-recorder", players=2, seconds=30, source="game.c"),
        Recording("drill-bridge", "qwd", players=1, seconds=6, source="quakeworld/drills/highbridge-to-rl.qwd"),
        Recording("drill-ring", "qwd", players=1, seconds=6, source="quakeworld/drills/ring-to-ratop.qwd"),
        Recording("match-demo22", "qwd", players=4, seconds=60, source="quakeworld/matches/demo22.qwd.xz"),
        Recording("openarena-a1", "quake3-udp", players=2, seconds=60, source="openarena/A1_0ms"),
        Recording("openarena-d1", "quake3-udp", players=2, seconds=60, source="openarena/D1_aim_50ms_2pct"),
    ]
    return found


def scenario(recording: Recording) -> str:
    """The recording as a scenario file."""
    # Other games cannot use a map of the arena.
    level = "" if recording.kind != "synth" else f'map = "{recording.map}"\n'
    settings = "".join(f'"{key}" = "{value}"\n' for key, value in recording.settings.items())
    return (
        f'preset = "{recording.preset}"\n{level}players = {recording.players}\nseconds = {recording.seconds}.0\n'
        f"seed = {recording.seed}\n[settings]\n{settings}[link]\n{LINKS[recording.link]}"
    )


def tools() -> dict[str, Path]:
    """The built programs that record other sessions."""
    built = REPOSITORY / "target" / "debug"
    found = {name: built / "examples" / name for name in ("pucks", "pucks_delay", "sides")}
    return {name: path for name, path in found.items() if path.exists()}


def program_of(recording: Recording, hitreg: Path) -> Path | None:
    """The program that plays the recording's game; `None` if it is not built."""
    return tools().get("pucks") if recording.kind == "pucks" else hitreg


def make(recording: Recording, runner: Runner, folder: Path, hitreg: Path) -> tuple[Path | None, str]:
    """Records or imports the log. Returns the log, or `None` and the reason for a skip or failure."""
    log = folder / "a.hitlog"
    if log.exists():
        return log, ""
    makers = {"synth": make_synth, "pucks": make_synth, "sides": make_merged, "side": make_merged, "client-side": make_merged}
    makers |= {"c-recorder": make_by_c, "qwd": make_import, "quake3-udp": make_import}
    run, why = makers[recording.kind](recording, runner, folder, hitreg)
    if run is None:
        return None, f"skipped: {why}"
    if run.code != 0:
        return None, f"failed: exit {run.code}: {' '.join(run.argv)}: {run.last_words}"
    return log, ""


def make_synth(recording: Recording, runner: Runner, folder: Path, hitreg: Path) -> tuple[Run | None, str]:
    """Records bots in virtual time."""
    program = program_of(recording, hitreg)
    if program is None:
        return None, "target/debug/examples/pucks is not built (cargo build --examples)"
    (folder / "scenario.toml").write_text(scenario(recording))
    record = [program, "record", "synth", "--scenario", "scenario.toml", "-o", "a.hitlog", "--force"]
    if recording.keyframes:
        run = runner.run([*record, "--keyframes", str(recording.keyframes)], folder)
        # A session whose snapshots queue for more than 30 s has no keyframes, and says so.
        if run.code != 128 or "cannot be streamed" not in run.last_words:
            return run, ""
    return runner.run([*record, "--no-keyframes"], folder), ""


def make_merged(recording: Recording, runner: Runner, folder: Path, hitreg: Path) -> tuple[Run | None, str]:
    """Writes the logs of a session's sides, and merges them or returns one of them."""
    sides = tools().get("sides")
    if sides is None:
        return None, "target/debug/examples/sides is not built (cargo build --examples)"
    (folder / "sides").mkdir(exist_ok=True)
    written = runner.run([sides, str(recording.seconds), str(recording.players), "sides"], folder)
    if written.code != 0:
        return written, ""
    if recording.kind in ("side", "client-side"):
        side = "server" if recording.kind == "side" else "client0"
        (folder / "sides" / f"{side}.hitlog").rename(folder / "a.hitlog")
        return written, ""
    logs = sorted(str(path.relative_to(folder)) for path in (folder / "sides").glob("*.hitlog"))
    return runner.run([hitreg, "merge", *logs, "-o", "a.hitlog", "--force"], folder), ""


def make_by_c(recording: Recording, runner: Runner, folder: Path, hitreg: Path) -> tuple[Run | None, str]:
    """Runs the C example, which records its session through the C ABI."""
    library = REPOSITORY / "target" / "debug" / "libhitreg_capi.a"
    if not library.exists():
        return None, "target/debug/libhitreg_capi.a is not built (cargo build -p hitreg-capi)"
    source = REPOSITORY / "examples" / "c" / recording.source
    flags = ["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-ffp-contract=off", "-I", REPOSITORY / "crates" / "hitreg-capi" / "include"]
    compiled = runner.run(["cc", *flags, source, library, "-lpthread", "-ldl", "-lm", "-o", "game"], folder)
    if compiled.code != 0:
        return None, f"the C example does not compile: {compiled.last_words}"
    return runner.run(["./game", "record", "a.hitlog"], folder), ""


def make_import(recording: Recording, runner: Runner, folder: Path, hitreg: Path) -> tuple[Run | None, str]:
    """Imports a demo or a capture of ../shared/data."""
    source = SHARED_DATA / recording.source
    if recording.kind == "qwd":
        if not source.exists():
            return None, f"{source} is not here"
        maps = SHARED_DATA / "quakeworld" / "maps"
        return runner.run([hitreg, "import", "qwd", source, "--maps", maps, "-o", "a.hitlog", "--force"], folder), ""
    capture = source.with_name(source.name + ".trace.zst")
    if not capture.exists():
        return None, f"{capture} is not here"
    server_log = source.with_name(source.name + ".server.log")
    argv = [hitreg, "import", "quake3-udp", capture, "--server-log", server_log, "-o", "a.hitlog", "--force"]
    return runner.run(argv, folder), ""
