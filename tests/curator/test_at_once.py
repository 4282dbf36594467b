"""The same question asked at once, by threads and by processes: paid once, and one answer for all."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from incrowd import BackendError, Curator, LedgerError
from incrowd.curator import paying
from tests.curator.test_ordinary_life import COUNT, left, policy

_SLOW = """
import sys, time
from incrowd import Curator
execute = Curator.execute
def slow(*words):
    print("at work", flush=True)
    time.sleep(float(sys.argv[1]))
    return execute(*words)
Curator.execute = slow
with Curator.open("curator.yaml") as curator:
    print(curator.ask("SELECT COUNT(*) AS n FROM people", epsilon=1.0).to_arrow()["n"][0].as_py(), flush=True)
"""


def number(answer: Any) -> int:
    return int(answer.to_arrow()["n"][0].as_py())


def slow_process(folder: Path, seconds: float) -> subprocess.Popen[str]:
    """A process that has paid for the question and is at work on it."""
    words = [sys.executable, "-c", _SLOW, str(seconds)]
    child = subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None and child.stdout.readline() == "at work\n"
    return child


class Gate:
    """Holds back the first ask between its payment and its answer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, failure: Exception | None = None) -> None:
        self.paid, self.open = threading.Event(), threading.Event()
        execute = Curator.execute

        def held_back(*words: Any) -> Any:
            first = not self.paid.is_set()
            self.paid.set()
            if first:
                assert self.open.wait(30)
                if failure is not None:
                    raise failure
            return execute(*words)

        monkeypatch.setattr(Curator, "execute", held_back)


def in_background(curator: Curator, **options: Any) -> tuple[threading.Thread, list[Any]]:
    answers: list[Any] = []

    def ask() -> None:
        try:
            answers.append(curator.ask(COUNT, epsilon=1.0, **options))
        except BackendError as error:
            answers.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    return thread, answers


def test_threads_that_ask_the_same_pay_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Curator.open(policy(tmp_path)) as curator:
        gate, waited = Gate(monkeypatch), threading.Event()
        first, answer = in_background(curator)
        assert gate.paid.wait(30)
        second, recalled = in_background(curator, progress=lambda share: waited.set())
        assert waited.wait(30)
        gate.open.set()
        first.join()
        second.join()
        assert number(answer[0]) == number(recalled[0])
        assert not answer[0].recalled and recalled[0].recalled
        assert curator.budget()[0].left.epsilon == 9


def test_a_waiter_pays_if_the_first_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Curator.open(policy(tmp_path)) as curator:
        gate, waited = Gate(monkeypatch, BackendError("It failed.")), threading.Event()
        first, failure = in_background(curator)
        assert gate.paid.wait(30)
        second, answer = in_background(curator, progress=lambda share: waited.set())
        assert waited.wait(30)
        gate.open.set()
        first.join()
        second.join()
        assert isinstance(failure[0], BackendError) and not answer[0].recalled
        assert curator.budget()[0].left.epsilon == 8


def test_a_waiter_can_be_interrupted_and_does_not_wait_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Curator.open(policy(tmp_path)) as curator:
        gate = Gate(monkeypatch)
        first, answer = in_background(curator)
        assert gate.paid.wait(30)

        def interrupt(share: float) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            curator.ask(COUNT, epsilon=1.0, progress=interrupt)
        monkeypatch.setattr(paying, "WAIT", 0.1)
        with pytest.raises(LedgerError, match="is at work already and had no answer after") as late:
            curator.ask(COUNT, epsilon=1.0)
        assert str(late.value).count(".") - str(late.value).count("0.") == 1
        gate.open.set()
        first.join()
        assert number(answer[0]) == number(curator.ask(COUNT, epsilon=1.0))
        assert curator.budget()[0].left.epsilon == 9


def test_processes_that_ask_the_same_pay_once(tmp_path: Path) -> None:
    file = policy(tmp_path)
    child = slow_process(tmp_path, 1.0)
    with Curator.open(file) as curator:
        answer = curator.ask(COUNT, epsilon=1.0)
    said, _ = child.communicate(timeout=60)
    assert number(answer) == int(said) and answer.recalled
    assert left(file) == 9


def test_a_killed_process_is_taken_over_at_no_further_price(tmp_path: Path) -> None:
    file = policy(tmp_path)
    child = slow_process(tmp_path, 600.0)
    waited: list[float] = []

    def kill(share: float) -> None:
        if not waited:
            child.send_signal(signal.SIGKILL)
            child.wait(timeout=30)
        waited.append(share)

    with Curator.open(file) as curator:
        answer = curator.ask(COUNT, epsilon=1.0, progress=kill)
        assert waited and not answer.recalled
        assert number(answer) == number(curator.ask(COUNT, epsilon=1.0))
        assert curator.ledger.verify().ok
    child.communicate()
    assert left(file) == 9


def test_a_slow_first_that_was_overtaken_shows_the_recorded_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from incrowd.curator.ledger import claims

    with Curator.open(policy(tmp_path)) as curator:
        gate = Gate(monkeypatch)
        first, answer = in_background(curator)
        assert gate.paid.wait(30)
        claims._held.clear()  # as a process looks that is gone
        taken_over = curator.ask(COUNT, epsilon=1.0)
        gate.open.set()
        first.join()
        assert number(answer[0]) == number(taken_over)
        assert answer[0].recalled and not taken_over.recalled
        assert curator.budget()[0].left.epsilon == 9
