"""A program that asks one question on a cluster while executors are lost, slow or all gone.

It prints what became of each ask. It is a program of its own because a process has only one Spark.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from incrowd import Curator, IncrowdError
from tests.backends.spark_cluster import DRIVER, Cluster, cluster
from tests.sweep import WHOLE

QUESTION = "SELECT g, COUNT(*) AS n, SUM(x) AS s, COUNT(DISTINCT person) AS p FROM visits GROUP BY g"
PATIENCE = 60.0
"""Seconds after which the program no longer waits for something to happen in Spark."""


class Watched(Curator):
    """A curator that keeps its last exact numbers."""

    exact: Any = None

    def execute(self, *words: Any, **named: Any) -> Any:
        """Step 5, as usual."""
        self.exact = super().execute(*words, **named)
        return self.exact

    def numbers(self) -> list[list[int]]:
        """The groups and the exact numbers in them."""
        (part,) = self.exact
        sums = [[int(steps) for steps in part.sums[name]] for name in sorted(part.sums)]
        return [part.groups.column(0).to_pylist(), *sums]


def opened(folder: Path, url: str | None = None) -> Watched:
    """A curator of the visits in a folder's files: on Spark, or without a URL in DuckDB."""
    files = str(folder / "visits/*.parquet")
    columns = {
        "person": {"type": "integer"},
        "g": {"type": "integer", "domain": list(range(5))},
        "x": {"type": "float", "bounds": [0, 100]},
    }
    table: dict[str, Any] = {"unit": "person", "columns": columns}
    facts = {
        "sources": {"lake": {"url": url, "timeout": 120} if url else {"parquet": files}},
        "tables": {"visits": {**table, "path": files} if url else table},
        "budget": {"epsilon": 100, "delta": 1e-6},
    }
    file = folder / f"{'spark' if url else 'plain'}.yaml"
    if file.exists():  # with the id of its ledger
        facts = yaml.safe_load(file.read_text()) | facts
    file.write_text(yaml.safe_dump(facts))
    curator = Watched.open(file, new_ledger=not file.with_suffix(".ledger").exists())
    assert isinstance(curator, Watched)
    return curator


def ask(curator: Watched, epsilon: float) -> list[list[int]]:
    """The exact numbers of the question. A higher epsilon than before makes it new."""
    curator.ask(QUESTION, epsilon=epsilon, contribution=3, groups=2)
    return curator.numbers()


class Asking:
    """Asks again and again, and tells what became of it."""

    def __init__(self, folder: Path, home: Cluster) -> None:
        self._open: Callable[[], Watched] = lambda: opened(folder, home.url)
        self.home = home
        self.curator = self._open()
        self._asked = 0

    @property
    def _context(self) -> Any:
        return self.curator.backend._session.sparkContext  # type: ignore[attr-defined]

    def ask(self, name: str, meddle: Callable[[], None] | None = None) -> None:
        """Ask; `meddle` begins when the statement does."""
        self._asked += 1
        backend: Any = self.curator.backend
        attach, threads = type(backend)._attach, []

        def attached(names: Any) -> None:
            attach(backend, names)
            threads.append(threading.Thread(target=meddle))
            threads[0].start()

        if meddle is not None:
            backend._attach = attached
        before, failures, began = self._left(), self._failures(), time.monotonic()
        outcome: dict[str, Any] = {"name": name}
        try:
            outcome["numbers"] = ask(self.curator, float(self._asked))
        except IncrowdError as error:
            outcome["said"] = str(error)
        for thread in threads:
            thread.join()
        backend.__dict__.pop("_attach", None)
        outcome["paid"] = (before - self._left()) / self._asked
        outcome["failures"] = self._failures() - failures
        outcome["seconds"] = round(time.monotonic() - began, 1)
        print(json.dumps(outcome), flush=True)

    def _left(self) -> float:
        return float(self.curator.budget()[0].left.epsilon)

    def _failures(self) -> int:
        """The number of tasks that failed, and of stages that were begun again, so far."""
        tracker = self._context.statusTracker()
        stages = [stage for stage in map(tracker.getStageInfo, range(1000)) if stage is not None]
        return sum(stage.numFailedTasks + stage.currentAttemptId for stage in stages)

    def midway(self) -> int:
        """Wait until a stage of many tasks has done some of them and works on others; returns its number."""
        tracker = self._context.statusTracker()
        for _ in _patiently():
            for number in tracker.getActiveStageIds():
                stage = tracker.getStageInfo(number)
                if stage is None or stage.numTasks < 10 or not stage.numActiveTasks:
                    continue
                if stage.numCompletedTasks >= 4:
                    return int(number)
        raise TimeoutError

    def lose(self, *workers: int) -> Callable[[], None]:
        """Kill workers and their executors midway."""

        def lose() -> None:
            self.midway()
            for worker in workers:
                self.home.kill(worker)

        return lose

    def delay(self, worker: int) -> Callable[[], None]:
        """Hold a worker's executor midway, until another one has begun to do its task as well."""

        def delay() -> None:
            stage = self.midway()
            executors = self.home.executors(worker)
            try:
                for executor in executors:
                    os.kill(executor, signal.SIGSTOP)
                for _ in _patiently():
                    if self._speculating(stage):
                        print(json.dumps({"name": "speculation"}), flush=True)
                        return
            finally:
                for executor in executors:
                    os.kill(executor, signal.SIGCONT)

        return delay

    def _speculating(self, stage: int) -> bool:
        """True if a task of this stage, or of a later one, was begun twice."""
        tracker, store = self._context.statusTracker(), self._context._jsc.sc().statusStore()
        while tracker.getStageInfo(stage) is not None:
            tasks = store.taskList(stage, 0, 1000)
            if any(tasks.apply(place).speculative() for place in range(tasks.size())):
                return True
            stage += 1
        return False

    def wait_for(self, executors: int) -> None:
        """Wait until so many executors are there."""
        for _ in _patiently():
            # The driver counts as one.
            if self._context._jsc.sc().getExecutorMemoryStatus().size() > executors:
                return
        raise TimeoutError

    def in_time(self, seconds: int) -> None:
        """How long a statement may take from now on."""
        self.curator.backend._timeout = seconds  # type: ignore[attr-defined]

    def stop_spark(self) -> None:
        """End Spark as its master does when it removes an application."""
        self._context._jsc.sc().stop()

    def open_again(self) -> None:
        """Another curator after this one."""
        self.curator.close()
        self.curator = self._open()


def _patiently() -> Any:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        yield
        time.sleep(0.02)


def main(folder: Path) -> None:
    """Ask in all circumstances, one after the other."""
    settings = " ".join(f"--conf '{name}={value}'" for name, value in DRIVER.items())
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"{settings} pyspark-shell"
    (folder / "cluster").mkdir()
    with cluster(folder / "cluster") as home:
        asking = Asking(folder, home)
        asking.wait_for(2)
        asking.ask("a straggler", asking.delay(1))
        asking.ask("a worker lost", asking.lose(0))
        asking.in_time(3)
        asking.ask("all workers lost", asking.lose(1))
        asking.in_time(120)
        home.add_worker()
        asking.ask("a worker back")
        asking.stop_spark()
        asking.ask("stopped")
        if WHOLE:
            asking.open_again()
            asking.ask("opened again")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
