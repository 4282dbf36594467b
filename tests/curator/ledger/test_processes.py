"""Real processes, on a file and on a PostgreSQL server: many that ask at once, some killed at every step.

INCROWD_LEDGER_PROCESSES and INCROWD_LEDGER_ASKS make the first test larger (8 and 200, say).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from incrowd.catalog import Catalog, check
from incrowd.curator.ledger import Ledger
from incrowd.privacy import pure
from tests.sweep import sized

PROCESSES = int(os.environ.get("INCROWD_LEDGER_PROCESSES", sized(5, 8)))
ASKS = int(os.environ.get("INCROWD_LEDGER_ASKS", sized(30, 60)))


@pytest.fixture(params=["file", "server"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "file":
        return str(tmp_path / "a.ledger")
    url: str = request.getfixturevalue("postgres_database")
    return url


def declared(total: float, people: int) -> Catalog:
    return check(json.loads(terms(total, people)))


def terms(total: float, people: int) -> str:
    return json.dumps(
        {
            "sources": {"s": {"csv": "a.csv"}},
            "tables": {"t": {"unit": "row", "columns": {"a": {"type": "integer"}}}},
            "budget": {"epsilon": total},
            "groups": {"all": {"epsilon": total, "members": [f"p{i}" for i in range(people)]}},
            "analysts": {f"p{i}": {"epsilon": total, "per_day": {"epsilon": total}} for i in range(people)},
        }
    )


# The drivers below fork their children: as real as starting Python for each, without importing it all again.
ASKERS = """
import json, os, sys
from incrowd.catalog import check
from incrowd.curator.ledger import Ledger
from incrowd.errors import BudgetExceeded, LedgerError
from incrowd.privacy import pure
where, terms, folder, processes, asks, sizes = sys.argv[1:]
caps, sizes = check(json.loads(terms)), json.loads(sizes)

def opened():
    try:
        return Ledger.found(where, caps)  # one of all may
    except LedgerError as error:
        assert "already" in str(error), error
        return Ledger.open(where, caps)

def ask(name):
    ledger, paid, refused = opened(), [], []
    for number in range(int(asks)):
        size = sizes[number % len(sizes)]
        try:
            reservation = ledger.reserve(name, pure(size), f"{name}-{number}", "v")
            paid.append(size)
            if number % 3 == 0:
                ledger.record(reservation, name.encode())
        except BudgetExceeded:
            refused.append(size)
    with open(f"{folder}/{name}.json", "w") as file:
        json.dump([paid, refused], file)

gate, opener = os.pipe()
children = []
for number in range(int(processes)):
    child = os.fork()
    if child == 0:
        status = 3
        try:
            os.close(opener)
            os.read(gate, 1)  # all start at once, and make the ledger together
            ask(f"p{number}")
            status = 0
        finally:
            os._exit(status)
    children.append(child)
os.close(opener)
sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
"""


@pytest.mark.parametrize("sizes", [[0.01], [0.01, 0.003, 0.02]])
def test_asks_at_once_never_overspend_and_are_never_refused_while_enough_is_left(
    tmp_path: Path, where: str, sizes: list[float]
) -> None:
    # Enough for five in eight of the asks, so that the end is reached while all are still asking.
    cost = sum(Fraction(str(sizes[n % len(sizes)])) for n in range(ASKS)) * PROCESSES
    total = float(cost * Fraction(5, 8))
    arguments = [where, terms(total, PROCESSES), str(tmp_path), str(PROCESSES), str(ASKS), json.dumps(sizes)]
    done = subprocess.run(
        [sys.executable, "-c", ASKERS, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    results: list[Any] = [json.loads((tmp_path / f"p{i}.json").read_text()) for i in range(PROCESSES)]
    paid = [Fraction(str(size)) for accepted, _ in results for size in accepted]
    refused = [Fraction(str(size)) for _, rejected in results for size in rejected]
    left = Fraction(str(total)) - sum(paid)
    assert left >= 0, "no overspending by any amount"
    assert refused and all(size > left for size in refused), "no refusal while enough was left"
    if len(sizes) == 1:
        assert len(paid) == int(Fraction(str(total)) / Fraction(str(sizes[0])))
    ledger = Ledger.open(where, declared(total, PROCESSES))
    verified = ledger.verify().require()
    assert verified.reservations == len(paid)
    (dataset, *_) = ledger.remaining("p0")
    assert dataset.left.main == float(left)
    ledger.close()


KILLED = """
import json, os, signal, sys
from sqlalchemy import event
from incrowd.catalog import check
from incrowd.curator.ledger import Ledger
from incrowd.errors import LedgerError
from incrowd.privacy import pure
where, terms = sys.argv[1:]
caps = check(json.loads(terms))
die = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)

def place(name):
    # A ledger of its own: another file, or another schema of the same database.
    if "://" not in where:
        return f"{where}-{name}"
    import psycopg
    with psycopg.connect(where) as connection:
        connection.execute(f'CREATE SCHEMA "{name}"')
    return f"{where}?options=-csearch_path%3D{name}"

def statements(path, count, during):
    ledger = Ledger.found(path, caps)
    reservation = ledger.reserve("p0", pure(0.1), "q", "v") if during == "record" else None
    seen = [0]
    def after(*_):
        seen[0] += 1
        if seen[0] == count:
            die()
    event.listen(ledger._store.engine, "after_cursor_execute", after)
    event.listen(ledger._store.engine, "commit", after)
    if during == "record":
        ledger.record(reservation, b"x")
    else:
        ledger.reserve("p0", pure(0.1), "q", "v")
    os._exit(0)  # fewer statements than `count`: every step was tried

def point(path, name):
    ledger = Ledger.found(path, caps)
    reservation = ledger.reserve("p0", pure(0.1), "q", "v")
    if name == "after_reserve":
        die()
    ledger.record(reservation, b"x")
    die()

def making(path, count):
    seen = [0]
    from incrowd.curator.ledger import store
    def after(*_):
        seen[0] += 1
        if seen[0] == count:
            die()
    prepare = store._prepare_connections
    def watched(each):
        prepare(each)
        event.listen(each.engine, "after_cursor_execute", after)
        event.listen(each.engine, "commit", after)
    store._prepare_connections = watched
    Ledger.found(path, caps)
    os._exit(0)

def dies(run, *arguments):
    child = os.fork()
    if child == 0:
        try:
            run(*arguments)
        finally:
            os._exit(3)
    status = os.waitpid(child, 0)[1]
    if os.WIFEXITED(status):
        assert os.WEXITSTATUS(status) == 0, status
        return False
    assert os.WTERMSIG(status) == signal.SIGKILL
    return True

def state(path, whole=True):
    try:
        ledger = Ledger.open(path, caps)
    except LedgerError as error:
        assert not whole and "There is no ledger" in str(error), error
        ledger = Ledger.found(path, caps)
    found = ledger.verify().require()
    spent = ledger.remaining("p0")[0].spent.epsilon
    answer = ledger.recall("q", "v", "p0")
    ledger.reserve("p0", pure(0.1), "after", "v")  # and it goes on working
    ledger.verify().require()
    ledger.close()
    return [found.reservations, spent, answer is not None]

def every_step(run, name, *arguments):
    count = 1
    while dies(run, path := place(f"{name}_{count}"), count, *arguments):
        report.append([name, count, *state(path, whole=name != "making")])
        count += 1

report = []
for during in ("reserve", "record"):
    every_step(statements, during, during)
for name in ("after_reserve", "after_record"):
    assert dies(point, path := place(name), name)
    report.append([name, 0, *state(path)])
every_step(making, "making")
print(json.dumps(report))
"""


def test_a_process_killed_at_any_step_leaves_a_ledger_that_verifies_with_the_spend_kept(where: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED, where, terms(3.0, 1)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    price = pure(0.1).charge().epsilon
    steps = {name: sum(entry[0] == name for entry in report) for name in ("reserve", "record", "making")}
    assert steps["reserve"] >= 7 and steps["record"] >= 6 and steps["making"] >= 8, steps
    for step, count, reservations, spent, answered in report:
        if step in ("reserve", "making"):
            # Killed before the commit: nothing was spent, and no data was read yet.
            assert (reservations, spent, answered) == (0, 0, False), (step, count)
        else:
            assert (reservations, spent) == (1, price), (step, count)
            assert answered == (step == "after_record"), (step, count)


STEADY = """
import json, os, signal, sys
from incrowd.catalog import check
from incrowd.curator.ledger import Ledger
from incrowd.privacy import pure
where, caps = sys.argv[1], check(json.loads(sys.argv[2]))

def forever(output):
    ledger = Ledger.open(where, caps)
    while True:
        paid = ledger.reserve("p0", pure(0.001), "q", "v")
        os.write(output, b"x")
        ledger.record(paid, b"answer")

Ledger.found(where, caps).close()
known = 0
for acknowledged in (1, 2, 3, 5, 8, 13, 21, 34, 1, 2, 3, 5):
    output, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            forever(into)
        finally:
            os._exit(3)
    os.close(into)
    for _ in range(acknowledged):
        assert os.read(output, 1) == b"x"
    os.kill(child, signal.SIGKILL)  # wherever it is in its next ask
    os.waitpid(child, 0)
    while more := os.read(output, 4096):
        acknowledged += len(more)
    os.close(output)
    ledger = Ledger.open(where, caps)
    with ledger.writing():
        pass  # a server may still be carrying out the commit of the killed
    found = ledger.verify().require().reservations
    ledger.close()
    assert known + acknowledged <= found <= known + acknowledged + 1, (known, acknowledged, found)
    known = found
print("survived")
"""


def test_a_spend_that_was_acknowledged_survives_a_kill_at_any_moment(where: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", STEADY, where, terms(1000.0, 1)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "survived\n"), done.stderr


FORKED = """
import json, os, sys
from incrowd.catalog import check
from incrowd.curator.ledger import Ledger
from incrowd.errors import LedgerError
from incrowd.privacy import pure
caps = check(json.loads(sys.argv[2]))
ledger, memory = Ledger.found(sys.argv[1], caps), Ledger.open(None, caps)
for each in (ledger, memory):
    each.reserve("p0", pure(0.1), "q", "v")
child = os.fork()
for _ in range(20):
    ledger.reserve("p0", pure(0.1), "q", "v")
if child == 0:
    try:
        memory.reserve("p0", pure(0.1), "q", "v")
    except LedgerError as error:
        os._exit(0 if "cannot be shared" in str(error) else 1)
    os._exit(2)
assert os.waitpid(child, 0)[1] == 0
print(ledger.verify().require().reservations)
"""


def test_a_ledger_opened_before_a_fork_serves_both_sides(where: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKED, where, terms(100.0, 1)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "41\n"), done.stderr
