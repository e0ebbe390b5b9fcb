"""Judges the logs of a manifest on a Ray cluster, with any hitreg command over a corpus.

    python ray_job.py MANIFEST --hitreg ./hitreg --out OUT -- diff --b-set interpolation.lerp_ms=50

MANIFEST has one log a line: a path in a folder that all machines share, or a URL that fsspec opens (s3://, gs://,
https://). Ray schedules the batches, and runs a batch again if its worker is lost. OUT gets `results.jsonl`, which
`hitreg summary` reads, and the same rows as Parquet, for DuckDB.
"""

import argparse
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

import fsspec
import ray

MEMORY_BYTES = 512 << 20  # of one task; hitreg needs less than 200 MB


def read_manifest(url):
    """The logs of a manifest. Relative paths start at the manifest's folder."""
    with fsspec.open(url, "rt") as file:
        lines = [line.strip() for line in file]
    url = url if "://" in url else os.path.abspath(url)
    folder = url.rsplit("/", 1)[0]
    logs = [line for line in lines if line and not line.startswith("#")]
    return [log if "://" in log or os.path.isabs(log) else f"{folder}/{log}" for log in logs]


@ray.remote(max_retries=5, memory=MEMORY_BYTES)
def judge(logs, hitreg, command, options):
    """The rows of a batch of logs, the logs without a verdict, and problems besides the logs.

    A row names a log by its path or URL, wherever the log was read.
    """
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "hitreg")
        with open(program, "wb") as file:
            file.write(hitreg)
        os.chmod(program, 0o755)
        local, names = [], {}
        for number, log in enumerate(logs):
            path = log
            if "://" in log:
                path = os.path.join(folder, f"{number}.hitlog")
                with fsspec.open(log, "rb") as source, open(path, "wb") as target:
                    while block := source.read(1 << 20):
                        target.write(block)
            local.append(path)
            names[path] = log
        manifest = os.path.join(folder, "list")
        pathlib.Path(manifest).write_text("".join(f"{path}\n" for path in local))
        results = os.path.join(folder, "results")
        line = [program, command, f"@{manifest}", *options, "--results", results, "--threads", "1", "--config", "none"]
        line += ["--format", "json"]
        ran = subprocess.run(line, capture_output=True, text=True)
        if not ran.stdout:
            raise RuntimeError(f"{shlex.join(line)}: exit code {ran.returncode}: {ran.stderr}")
        page = json.loads(ran.stdout)
        rows = [json.loads(text) for text in pathlib.Path(results, "results.jsonl").read_text().splitlines()]
        for row in rows:
            path = row.get("log")
            if path in names:
                row["log"] = names[path]
                if row["row"] == "log" and "://" in names[path]:
                    row["absolute_path"] = names[path]
                row["next"] = row["next"].replace(path, names[path]).replace(program, "hitreg")
        judged = {row["log"] for row in rows if row["row"] == "log"}
        problems = page.get("summary", page)["problems"]
        return rows, [log for log in logs if log not in judged], problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("manifest")
    parser.add_argument("--hitreg", required=True, help="the program that judges")
    parser.add_argument("--out", required=True, help="a folder for the results")
    parser.add_argument("--address", help="an existing cluster; without it, this machine")
    parser.add_argument("--batch", type=int, default=200, help="logs in one task")
    parser.add_argument("command", choices=["verify", "diff"])
    parser.add_argument("options", nargs=argparse.REMAINDER)
    args = parser.parse_args([word for word in sys.argv[1:] if word != "--"])
    # Credentials of an object store reach the workers through the environment.
    stores = {name: value for name, value in os.environ.items() if name.startswith(("AWS_", "FSSPEC_", "GOOGLE_"))}
    ray.init(address=args.address, runtime_env={"env_vars": stores} if stores else None, log_to_driver=False)
    logs = read_manifest(args.manifest)
    program = ray.put(pathlib.Path(args.hitreg).read_bytes())
    batches = [logs[start : start + args.batch] for start in range(0, len(logs), args.batch)]
    waiting = [judge.remote(batch, program, args.command, args.options) for batch in batches]
    out = pathlib.Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    done, failed = 0, False
    with open(out / "results.jsonl", "w", encoding="utf-8") as file:
        while waiting:
            ready, waiting = ray.wait(waiting)
            rows, unjudged, problems = ray.get(ready[0])
            # The fields keep their order, so that the lines equal those of a run on one machine.
            file.writelines(json.dumps(row, separators=(",", ":"), ensure_ascii=False) + "\n" for row in rows)
            file.flush()
            failed |= bool(unjudged or problems)
            done += 1
            print(f"{done} of {len(batches)} batches", file=sys.stderr)
            for problem in [*problems, *(f"not judged: {log}" for log in unjudged)]:
                print(problem, file=sys.stderr)
    import duckdb

    source, target = (str(out / name).replace("'", "''") for name in ("results.jsonl", "results.parquet"))
    read = f"read_json('{source}', format = 'newline_delimited', union_by_name = true, sample_size = -1)"
    duckdb.sql(f"copy (select * from {read}) to '{target}' (format parquet, compression zstd)")
    return 128 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
