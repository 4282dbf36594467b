"""Questions on a real cluster whose executors are lost, slow or all gone: the same bits, or one sentence."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.backends.asking_on_a_cluster import ask, opened
from tests.sweep import WHOLE, sized

ROOT = Path(__file__).parents[2]


def furnish(folder: Path) -> None:
    """Visits of people with very different numbers of rows, in files that mix them."""
    rng = random.Random(7)
    (folder / "visits").mkdir()
    rows = sized(4_000, 40_000)
    for part in range(12):
        people = [int(rng.paretovariate(0.6)) % 3_000 for _ in range(rows)]
        table = {
            "person": people,
            "g": [rng.randrange(5) for _ in people],
            "x": [rng.uniform(-9, 120) for _ in people],
        }
        pq.write_table(pa.table(table), folder / f"visits/part-{part:02}.parquet")


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("cluster")
    furnish(folder)
    program = subprocess.Popen(
        [sys.executable, "-m", "tests.backends.asking_on_a_cluster", str(folder)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        said, errors = program.communicate(timeout=sized(600, 1800))
    finally:
        if program.poll() is None:
            os.killpg(program.pid, signal.SIGKILL)
            program.wait()
    assert program.returncode == 0, errors[-3000:]
    told = {line["name"]: line for line in map(json.loads, said.splitlines())}
    with opened(folder) as plain:
        told["elsewhere"] = {"numbers": ask(plain, 1.0)}
    return told


def test_lost_and_repeated_tasks_change_no_bit(outcomes: dict[str, dict[str, Any]]) -> None:
    expected = outcomes["elsewhere"]["numbers"]
    assert all(any(sums) for sums in expected)
    for name in ("a straggler", "a worker lost", "a worker back", *(["opened again"] if WHOLE else [])):
        assert outcomes[name].get("numbers") == expected, outcomes[name]
        assert outcomes[name]["paid"] == pytest.approx(1)
    assert outcomes["a worker lost"]["failures"] > 0
    assert "speculation" in outcomes


def test_what_cannot_be_finished_is_one_sentence_and_stays_paid(outcomes: dict[str, dict[str, Any]]) -> None:
    lost, stopped = outcomes["all workers lost"], outcomes["stopped"]
    assert "stopped the question after 3 seconds, and its price stays spent" in lost["said"]
    assert lost["paid"] == pytest.approx(1)
    assert "open the curator again" in stopped["said"]
    assert stopped["paid"] == 0
    assert all(outcome["said"].endswith(".") and "\n" not in outcome["said"] for outcome in (lost, stopped))
