"""Runs ray_job.py on a cluster of three workers on this machine, and kills one of them before the job is done.

    python test_ray.py LOGS HITREG OUT -- diff --b-set interpolation.lerp_ms=50

LOGS is a folder. The logs come from an S3 server on loopback. Needs requirements.txt and `moto[server]`.
"""

import logging
import os
import pathlib
import subprocess
import sys
import threading
import time

# A busy machine starts workers slowly.
os.environ.setdefault("RAY_raylet_start_wait_time_s", "300")

from moto.server import ThreadedMotoServer
from ray.cluster_utils import Cluster

WORKERS = 3


def main():
    logs, hitreg, out, *command = sys.argv[1:]
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    os.environ.update(
        AWS_ACCESS_KEY_ID="test",
        AWS_SECRET_ACCESS_KEY="test",
        AWS_DEFAULT_REGION="us-east-1",
        AWS_ENDPOINT_URL=url,
        AWS_ENDPOINT_URL_S3=url,
    )
    import s3fs

    store = s3fs.S3FileSystem()
    store.mkdir("corpus")
    names = sorted(path.name for path in pathlib.Path(logs).glob("*.hitlog"))
    for name in names:
        store.put(f"{logs}/{name}", f"corpus/{name}")
    with store.open("corpus/list", "wt") as file:
        file.write("# logs\n" + "".join(f"{name}\n" for name in names))

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    workers = [
        cluster.add_node(num_cpus=1, memory=1 << 30, object_store_memory=200 << 20) for _ in range(WORKERS)
    ]
    cluster.wait_for_nodes()
    rows = pathlib.Path(out, "results.jsonl")

    def kill():
        while not (rows.exists() and rows.stat().st_size):
            time.sleep(0.01)
        done = rows.read_text().count('"row":"log"')
        cluster.remove_node(workers[0], allow_graceful=False)
        print(f"killed a worker after {done} of {len(names)} logs", file=sys.stderr)

    threading.Thread(target=kill, daemon=True).start()
    job = pathlib.Path(__file__).with_name("ray_job.py")
    options = ["--hitreg", hitreg, "--out", out, "--address", cluster.address, "--batch", "2"]
    ran = subprocess.run([sys.executable, str(job), "s3://corpus/list", *options, *command])
    cluster.shutdown()
    server.stop()
    return ran.returncode


if __name__ == "__main__":
    sys.exit(main())
