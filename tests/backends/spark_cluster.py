"""A Spark cluster on this machine: a master and workers of one core each, as processes that can be killed."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests import servers

_JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
DRIVER = {
    "spark.cores.max": "2",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": _JAVA,
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "768m",
    "spark.executor.cores": "1",
    "spark.executor.extraJavaOptions": _JAVA,
    "spark.executor.memory": "512m",
    "spark.locality.wait": "0",
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "200ms",
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.minTaskRuntime": "200ms",
    "spark.speculation.quantile": "0.3",
    # Weights are shuffled like rows, so that a lost executor takes parts of both with it.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    # Interpreted and planned once: for small tables, compiling and planning again take longer.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    # Each file is a task.
    "spark.sql.files.openCostInBytes": "134217728",
    "spark.sql.shuffle.partitions": "2",
}
"""The settings of an application: one executor with each worker."""


@dataclass
class Cluster:
    """A master's address and the workers that belong to it."""

    url: str
    folder: Path
    environment: dict[str, str]
    workers: list[subprocess.Popen[str]] = field(default_factory=list)

    def add_worker(self) -> None:
        """Start a worker and wait until the master knows it."""
        home = self.folder / f"worker-{len(self.workers)}"
        # Spark does a straggler's task again on another host only, so each worker has an address of its own.
        host = f"127.0.0.{len(self.workers) + 1}"
        options = ["--host", host, "--webui-port", "0", "-c", "1", "-m", "600M", "-d", str(home)]
        words = ["org.apache.spark.deploy.worker.Worker", *options, self.url]
        self.workers.append(_started(words, "registered with master", self.environment)[0])

    def executors(self, worker: int) -> list[int]:
        """The processes that compute for a worker."""
        children = Path(f"/proc/{self.workers[worker].pid}/task").glob("*/children")
        return [int(pid) for file in children for pid in file.read_text().split()]

    def kill(self, worker: int) -> None:
        """End a worker and its executor, without a word."""
        executors = self.executors(worker)
        self.workers[worker].kill()
        for pid in executors:
            os.kill(pid, signal.SIGKILL)
        self.workers[worker].wait()


@contextlib.contextmanager
def cluster(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """A cluster with its files in a folder."""
    (home,) = servers.package("pyspark")
    environment = {
        **os.environ,
        "JAVA_HOME": str(servers.java_home()),
        "SPARK_DAEMON_MEMORY": "192m",
        "SPARK_DAEMON_JAVA_OPTS": _JAVA,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_DIRS": str(folder),
    }
    words = ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0"]
    ready = r"Starting Spark master at (spark://\S+)"
    master, said = _started([*words, "--webui-port", "0"], ready, environment)
    started = Cluster(said[1], folder, environment)
    try:
        for _ in range(workers):
            started.add_worker()
        yield started
    finally:
        for number, worker in enumerate(started.workers):
            if worker.poll() is None:
                started.kill(number)
        master.kill()
        master.wait()


def _started(
    words: list[str], ready: str, environment: dict[str, str]
) -> tuple[subprocess.Popen[str], re.Match[str]]:
    """A process of Spark, and the words by which it said that it is ready."""
    command = [f"{environment['SPARK_HOME']}/bin/spark-class", *words]
    process = subprocess.Popen(
        command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert process.stdout is not None
    log = []
    for line in process.stdout:
        log.append(line)
        if said := re.search(ready, line):
            # What it prints later must be taken from it, or it would wait for that.
            threading.Thread(target=process.stdout.read, daemon=True).start()
            return process, said
    raise RuntimeError("".join(log))
