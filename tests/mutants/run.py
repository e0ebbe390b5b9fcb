#!/usr/bin/env python3
"""Counts the mutants of the server and the client that hitreg's tests catch.

    tests/mutants/run.py                           # every mutant, every judge: hours
    tests/mutants/run.py --sample 12 --seed 1      # some of them
    tests/mutants/run.py --from 100 --to 199       # a range of numbers
    tests/mutants/run.py --judges unit --list      # builds, and prints the mutants

One build of a copy contains all mutants; HITREG_MUTANT selects one. Judges run in a fixed order until one fails.
Verdicts are appended to WORK/results.jsonl, and a mutant that has one is not judged again.
The exit code is 1 when a mutant survives.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
NETCODE = "crates/hitreg-netcode"
JUDGES = ("claims", "unit", "pipelines", "formats")


def cargo(target: pathlib.Path, where: pathlib.Path, *words: str) -> tuple[bool, list[dict]]:
    """Runs cargo; returns whether it succeeded, and its messages."""
    env = dict(os.environ, CARGO_TARGET_DIR=str(target))
    done = subprocess.run(["cargo", *words, "--message-format=json"], cwd=where, env=env, stdout=subprocess.PIPE)
    return done.returncode == 0, [json.loads(line) for line in done.stdout.splitlines() if line.startswith(b"{")]


class Build:
    """A copy of the repository with all mutants that compile."""

    def __init__(self, work: pathlib.Path, modules: str, judges: list[str]):
        self.work, self.modules = work, modules
        self.copy = work / "copy"
        sources = copy_repository(self.copy, modules.split(","))
        ok, messages = cargo(work / "tool", HERE, "build")
        if not ok:
            sys.exit("error: tests/mutants does not build")
        self.tool = executables(messages)["bin mutants"]
        # Verdicts hold for these sources and mutants only.
        rewriter = (HERE / "src/main.rs").read_text()
        self.digest = hashlib.sha256(json.dumps([sources, modules, rewriter]).encode()).hexdigest()[:16]
        known = work / f"dropped-{self.digest}.json"
        self.dropped: set[int] = set(json.loads(known.read_text())) if known.exists() else set()
        self.mutants = self.rewrite()
        # All in one command, because cargo chooses features by command. Cargo builds the command line for any
        # integration test. `skipped` is the smallest.
        words = ["-p", "hitreg-netcode"] + (["--lib"] if "unit" in judges else [])
        if judges != ["unit"]:
            tests = [judge for judge in judges if judge in ("pipelines", "formats")] or ["skipped"]
            words += ["-p", "hitreg", *(word for test in tests for word in ("--test", test))]
        self.programs = self.build(*words)
        known.write_text(json.dumps(sorted(self.dropped)))

    def rewrite(self) -> list[dict]:
        """Writes the sources of the copy; returns the mutants in them."""
        dropped = self.work / "dropped.txt"
        dropped.write_text(" ".join(map(str, sorted(self.dropped))))
        words = [self.tool, str(REPOSITORY), str(self.copy), self.modules, str(dropped)]
        lines = subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()
        names = ("number", "file", "line", "start", "end", "change")
        mutants = [dict(zip(names, line.split("\t"))) for line in lines]
        return [{k: int(v) if k not in ("file", "change") else v for k, v in mutant.items()} for mutant in mutants]

    def build(self, *words: str) -> dict[str, str]:
        """Builds tests; returns their paths. Drops mutants that do not compile, and tries again."""
        while True:
            ok, messages = cargo(self.work / "build", self.copy, "test", "--no-run", *words)
            if ok:
                return executables(messages)
            errors = [m["message"] for m in messages if m.get("message", {}).get("level") == "error"]
            spans = [span for error in errors for span in error["spans"] if span["is_primary"]]
            faulty = {number for span in spans for number in self.at(span)}
            if not faulty:
                sys.exit("".join(e["rendered"] for e in errors[:3]) + "error: the copy does not build")
            self.dropped |= faulty
            self.mutants = self.rewrite()
            print(f"{len(faulty)} mutants do not compile; {len(self.mutants)} are left", flush=True)

    def at(self, span: dict) -> set[int]:
        """The mutants that an error is about: the innermost around it, or those inside it, or those in its lines."""
        here = [m for m in self.mutants if m["file"].endswith(span["file_name"])]
        start, end = span["byte_start"], span["byte_end"]
        around = [m for m in here if m["start"] < start and end < m["end"]]
        if around:
            return {min(around, key=lambda m: m["end"] - m["start"])["number"]}
        inside = {m["number"] for m in here if start <= m["start"] and m["end"] <= end}
        return inside or {m["number"] for m in here if span["line_start"] <= m["line"] <= span["line_end"]}


def executables(messages: list[dict]) -> dict[str, str]:
    """Paths of programs by kind and name, such as `bin hitreg`."""
    return {f"{m['target']['kind'][0]} {m['target']['name']}": m["executable"] for m in messages if m.get("executable")}


def copy_repository(copy: pathlib.Path, modules: list[str]) -> str:
    """Copies tracked files that changed, except the ones that the rewriter writes; returns a hash of all sources."""
    rewritten = [f"{NETCODE}/src/lib.rs", f"{NETCODE}/src/mutants.rs"]
    rewritten += [f"{NETCODE}/src/{module}.rs" for module in modules]
    folders = tuple(f"{NETCODE}/src/{module}/" for module in modules)
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=REPOSITORY, check=True, capture_output=True, text=True)
    tracked = sorted(name for name in listed.stdout.split("\0") if name and (REPOSITORY / name).is_file())
    digest = hashlib.sha256()
    for name in tracked:
        content = (REPOSITORY / name).read_bytes()
        if not name.endswith(".md") and not name.startswith(("docs/", "tests/mutants/")):
            digest.update(f"{name}\0{len(content)}\0".encode() + content)
        if name in rewritten or name.startswith(folders):
            continue
        target = copy / name
        if not target.exists() or target.read_bytes() != content:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / name, target)
    kept = {copy / name for name in [*tracked, *rewritten]}
    for path in copy.rglob("*"):
        if path.is_file() and path not in kept:
            path.unlink()
    return digest.hexdigest()


def judge(build: Build, name: str, number: int, seconds: float) -> str | None:
    """Runs one judge against one mutant; returns why it fails, or `None` if it passes."""
    program = {"claims": "bin hitreg", "unit": "lib hitreg_netcode"}.get(name, f"test {name}")
    words = [build.programs[program]] + (["claims"] if name == "claims" else [])
    where = build.copy / NETCODE if name == "unit" else build.copy
    env = dict(os.environ, HITREG_MUTANT=str(number), CARGO_MANIFEST_DIR=str(where))
    run = subprocess.Popen(
        words, cwd=where, env=env, text=True, errors="replace", start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip

    def end() -> None:
        try:
            os.killpg(run.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    late = threading.Event()
    timer = threading.Timer(seconds, lambda: (late.set(), end()))
    timer.start()
    failed = None
    try:
        for line in run.stdout:
            if found := re.match(r"test (\S+).* FAILED$|FAILS +(\S+)", line.strip()):
                failed = found[1] or found[2]
                break
        else:
            run.wait()
    finally:
        timer.cancel()
        end()
    code = run.wait()
    if failed:
        return failed
    if late.is_set():
        return f"not finished after {seconds:.0f} s"
    return f"exit code {code}" if code else None


def measure(build: Build, judges: list[str], limit: float | None) -> dict[str, float]:
    """Runs each judge without a mutant; returns the seconds after which a mutant hangs."""
    path = build.work / f"unchanged-{build.digest}.json"
    seconds = json.loads(path.read_text()) if path.exists() else {}
    for name in judges:
        if name not in seconds:
            start = time.monotonic()
            if why := judge(build, name, 0, 24 * 3600):
                sys.exit(f"error: {name} fails without a mutant: {why}")
            seconds[name] = round(time.monotonic() - start, 1)
            path.write_text(json.dumps(seconds))
        print(f"{name}: {seconds[name]} s without a mutant", flush=True)
    return {name: limit or max(60.0, 5 * seconds[name]) for name in judges}


def report(verdicts: list[dict]) -> None:
    files = collections.defaultdict(collections.Counter)
    for verdict in verdicts:
        files[verdict["file"].removeprefix(f"{NETCODE}/src/")][verdict["verdict"]] += 1
    files["all"] = sum(files.values(), collections.Counter())
    print(f"\n{'file':34} {'mutants':>8} {'caught':>8} {'survived':>8} {'share':>8}")
    for file, counts in files.items():
        share = 100 * counts["caught"] / max(1, counts.total())
        print(f"{file:34} {counts.total():8} {counts['caught']:8} {counts['survived']:8} {share:6.1f} %")
    for v in verdicts:
        if v["verdict"] == "survived":
            print(f"survived: {v['number']}: {v['file']}:{v['line']}: {v['change']}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=pathlib.Path, default=REPOSITORY / "target/mutants", help="folder of the copy")
    parser.add_argument("--modules", default="server,client", help="modules of hitreg-netcode")
    parser.add_argument("--judges", default=",".join(JUDGES), help="which judges run")
    parser.add_argument("--from", type=int, default=1, dest="first", help="first mutant")
    parser.add_argument("--to", type=int, default=sys.maxsize, dest="last", help="last mutant")
    parser.add_argument("--sample", type=int, help="number of random mutants of the range")
    parser.add_argument("--seed", type=int, default=1, help="seed of --sample")
    parser.add_argument("--timeout", type=float, help="seconds for each judge; default: 5 times the unchanged run")
    parser.add_argument("--list", action="store_true", help="print the mutants that compile")
    args = parser.parse_args()
    judges = [name for name in JUDGES if name in args.judges.split(",")]
    if unknown := set(args.judges.split(",")) - set(JUDGES):
        parser.error(f"no such judge: {', '.join(sorted(unknown))}; judges: {', '.join(JUDGES)}")

    work = args.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    build = Build(work, args.modules, judges)
    print(f"{len(build.mutants)} mutants; {len(build.dropped)} more do not compile", flush=True)
    chosen = [m for m in build.mutants if args.first <= m["number"] <= args.last]
    if args.sample is not None:
        chosen = random.Random(args.seed).sample(chosen, min(args.sample, len(chosen)))
        chosen.sort(key=lambda m: m["number"])
    if args.list:
        for m in chosen:
            print(f"{m['number']}: {m['file']}:{m['line']}: {m['change']}")
        return 0

    results = work / "results.jsonl"
    known = {}
    if results.exists():
        for line in results.read_text().splitlines():
            verdict = json.loads(line)
            if verdict["digest"] == build.digest and (verdict["judge"] in judges or set(judges) <= set(verdict["judges"])):
                known[verdict["number"]] = verdict
    limits = measure(build, judges, args.timeout)
    verdicts = []
    for m in chosen:
        verdict = known.get(m["number"])
        if verdict is None:
            start = time.monotonic()
            verdict = {name: m[name] for name in ("number", "file", "line", "change")}
            verdict |= {"digest": build.digest, "judges": judges, "verdict": "survived", "judge": None, "why": None}
            for name in judges:
                if why := judge(build, name, m["number"], limits[name]):
                    verdict |= {"verdict": "caught", "judge": name, "why": why}
                    break
            verdict["seconds"] = round(time.monotonic() - start, 1)
            with results.open("a") as out:
                out.write(json.dumps(verdict) + "\n")
        by = f" by {verdict['judge']}: {verdict['why']}" if verdict["judge"] else ""
        print(f"{m['number']}: {verdict['verdict']}{by}: {m['file']}:{m['line']}: {m['change']}", flush=True)
        verdicts.append(verdict)
    report(verdicts)
    return int(any(v["verdict"] == "survived" for v in verdicts))


if __name__ == "__main__":
    sys.exit(main())
