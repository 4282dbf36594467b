"""A curator in ordinary life: killed, forked, closed, interrupted, out of memory or out of time."""

from __future__ import annotations

import multiprocessing
import os
import signal
import stat
import subprocess
import sys
from multiprocessing.queues import SimpleQueue
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from incrowd import BackendError, Curator, InvalidInput
from incrowd.backends import duckdb as backend
from incrowd.backends.duckdb_running import OutOfTimeError
from incrowd.catalog import load
from incrowd.curator.grants import Grant
from incrowd.curator.ledger import Ledger

POLICY = """
sources: {main: {parquet: people.parquet}}
tables:
  people: {unit: id, contribution: 1, columns: {id: {type: integer}, age: {type: integer, bounds: [0, 100]}}}
budget: {epsilon: 10, delta: 1e-6}
"""
_OPEN = """
import sys
from incrowd import Curator
with Curator.open("curator.yaml") as curator:
    setting = "SELECT current_setting('temp_directory')"
    print(curator.backend._connection.sql(setting).fetchall()[0][0], flush=True)
    sys.stdin.read()
"""


def policy(folder: Path, rows: int = 100) -> Path:
    """The owner's file of a small table, with its ledger."""
    pq.write_table(
        pa.table({"id": range(rows), "age": [age % 90 for age in range(rows)]}), folder / "people.parquet"
    )
    file = folder / "curator.yaml"
    file.write_text(POLICY)
    catalog = load(file)
    Ledger.found(catalog.ledger_url, catalog).close()
    return file


def test_rows_that_duckdb_writes_to_disk_are_private_and_swept_after_a_kill(tmp_path: Path) -> None:
    file = policy(tmp_path)
    child = subprocess.Popen(
        [sys.executable, "-c", _OPEN], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    left = Path(child.stdout.readline().strip())
    (left / "duckdb_temp_0.tmp").write_text("rows")
    child.send_signal(signal.SIGKILL)
    child.communicate()
    assert tmp_path in left.parents
    assert stat.S_IMODE(left.stat().st_mode) == stat.S_IMODE(left.parent.stat().st_mode) == 0o700
    with Curator.open(file):
        assert not left.exists()
    assert not list(tmp_path.glob("*/spill-*"))
    assert not (tmp_path / ".tmp").exists()


COUNT = "SELECT COUNT(*) AS n FROM people"


def left(file: Path) -> float:
    """The epsilon that another curator sees."""
    with Curator.open(file) as curator:
        return float(curator.budget()[0].left.epsilon)


def test_a_closed_curator_refuses_before_anything_is_paid(tmp_path: Path) -> None:
    file = policy(tmp_path)
    curator = Curator.open(file)
    grant = curator.grant(1.0, purpose="counts")
    curator.close()
    curator.close()
    before = left(file)
    for ask in (
        lambda: curator.ask(COUNT, epsilon=1.0),
        lambda: curator.price(COUNT, epsilon=1.0),
        lambda: curator.grant(1.0, purpose="more counts"),
        lambda: curator.budget(),
        lambda: grant.sums(COUNT),
        lambda: grant.record(b"counts"),
    ):
        with pytest.raises(InvalidInput, match="The curator is closed; open it again to ask"):
            ask()
    assert grant.left == {"sums": 1}
    assert left(file) == before


def _ask_in_child(curator: Curator, grant: Grant, file: Path, said: SimpleQueue[str]) -> None:
    for ask in (
        lambda: curator.ask(COUNT, epsilon=1.0),
        lambda: curator.grant(1.0, purpose="counts"),
        lambda: grant.sums(COUNT),
        lambda: grant.record(b"from the child"),
    ):
        try:
            ask()
        except InvalidInput as error:
            said.put(str(error))
    curator.close()
    with Curator.open(file) as own:
        said.put(str(own.ask(COUNT, epsilon=2.0).to_arrow().num_rows))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_is_refused_before_anything_is_paid_and_can_open_its_own(tmp_path: Path) -> None:
    file = policy(tmp_path)
    context = multiprocessing.get_context("fork")
    said = context.SimpleQueue()
    with Curator.open(file) as curator:
        grant = curator.grant(1.0, purpose="more counts")
        child = context.Process(target=_ask_in_child, args=(curator, grant, file, said))
        child.start()
        child.join(60)
        assert child.exitcode == 0
        for _ in range(4):
            assert "opened by another process, of which this one is a fork; open it here too" in said.get()
        assert said.get() == "1"
        assert curator.budget()[0].left.epsilon == 7.0
        grant.record(b"from the parent")
        assert grant.recorded == b"from the parent"
        assert curator.ask(COUNT, epsilon=1.0).to_arrow().num_rows == 1


def test_ctrl_c_leaves_the_price_spent_and_the_curator_usable(tmp_path: Path) -> None:
    def press(_: float) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    with Curator.open(policy(tmp_path)) as curator:
        with pytest.raises(KeyboardInterrupt):
            curator.ask(COUNT, epsilon=1.0, progress=press)
        assert curator.budget()[0].left.epsilon == 9.0
        assert curator.ask(COUNT, epsilon=1.0).to_arrow().num_rows == 1


def test_a_question_that_takes_too_long_stays_paid_and_is_told_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = policy(tmp_path)
    file.write_text(POLICY.replace("people.parquet}", "people.parquet, timeout: 3, memory: 200MB}"))

    def late(*_: object, seconds: float | None = None, **__: object) -> None:
        assert seconds == 3
        raise OutOfTimeError

    with Curator.open(file) as curator:
        setting = "SELECT current_setting('memory_limit')"
        assert curator.backend._connection.sql(setting).fetchall() == [("200.0 MiB",)]
        monkeypatch.setattr(backend, "stoppable", late)
        with pytest.raises(BackendError) as told:
            curator.ask(COUNT, epsilon=1.0)
        assert str(told.value) == (
            "The database stopped the question after 3 seconds, and its price stays spent; ask about fewer "
            "rows, or let the owner raise timeout of the source."
        )
        assert told.value.__cause__ is None and told.value.__context__ is None
        assert curator.budget()[0].left.epsilon == 9.0
