"""Callables, command lines and servers are run alike, and their failures are outputs."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from incrowd.adversary.audit import Batch, Command, Endpoint, Failure, audit
from incrowd.adversary.audit.runs import Single, runner_of
from incrowd.errors import InvalidInput
from incrowd.mechanisms import Laplace

COIN = "import json, random, sys; data = json.load(sys.stdin); "
FAILS = COIN + "sys.exit(3) if data == 1 else print(data)"
BATCH = COIN + "[print(json.dumps({'n': data['data'] + random.random()})) for _ in range(data['runs'])]"


def python(code: str, **settings: object) -> Command:
    return Command((sys.executable, "-S", "-c", code), **settings)  # type: ignore[arg-type]


def test_an_exception_is_an_output():
    assert Single(lambda data: 1 / data)(0, 2) == [Failure("ZeroDivisionError")] * 2
    assert Single(lambda data: 1 / data)(4, 1) == [0.25]


def test_a_mechanism_of_ours_is_run_by_its_release():
    assert isinstance(runner_of(Laplace(1.0))(5, 1)[0], int)


def test_a_command_gets_data_and_gives_json():
    assert python(COIN + "print(json.dumps([len(data), None]))")([1, 2], 2) == [[2, None]] * 2
    assert python("print('no JSON')")(0, 1) == ["no JSON"]


def test_a_command_that_fails_for_one_neighbour_is_caught():
    result = audit(python(FAILS, workers=2), 0, 1, epsilon=0.5, samples=40, confidence=0.9)
    assert result.verdict == "violates"
    assert "a failure (exit status 3)" in result.event


def test_a_command_that_takes_too_long_is_an_output():
    waits = python(COIN + "import threading; threading.Event().wait(60)", seconds=0.2)
    assert waits(0, 1) == [Failure("time-out")]


def test_a_command_in_batches_starts_once():
    outputs = python(BATCH, batch=True)(7, 300)
    assert len(outputs) == 300 and all(7 <= output["n"] < 8 for output in outputs)


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        (Command(("no-such-program",)), "cannot be started"),
        (python("print(1)", batch=True), "was asked for 5 lines"),
        (
            python(COIN + "import threading; threading.Event().wait(60)", batch=True, seconds=0.2),
            "took more than",
        ),
        (Batch(lambda data, runs: [1]), "asked for 5 outputs"),
        (Endpoint("http://127.0.0.1:9/"), "cannot be reached"),
    ],
)
def test_what_cannot_be_run_is_told_in_one_sentence(mechanism, words):
    with pytest.raises(InvalidInput, match=words) as caught:
        mechanism(0, 5)
    assert str(caught.value).endswith(".")


def test_wrong_mechanisms_and_data_are_refused():
    with pytest.raises(InvalidInput, match="no HTTP address"):
        runner_of("ftp://example")
    with pytest.raises(InvalidInput, match="must be a callable"):
        runner_of(5)
    with pytest.raises(InvalidInput, match="cannot be sent as JSON"):
        python("print(1)")(object(), 1)


class Noisy(BaseHTTPRequestHandler):
    """Answers a number with noise; fails for 13, hangs up for 14; lists for batches."""

    def do_POST(self) -> None:
        posted = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if posted == 14:
            self.close_connection = True
            return
        if isinstance(posted, dict):
            output = (posted["data"] + Laplace(1.0).release(np.zeros(posted["runs"], dtype=int))).tolist()
        else:
            output = posted + Laplace(1.0).release(0)
        body = json.dumps(output).encode()
        self.send_response(500 if posted == 13 else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Noisy)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_server_is_asked_run_by_run(address):
    outputs = Endpoint(address, workers=2)(100, 20)
    assert len(outputs) == 20 and all(isinstance(output, int) for output in outputs)
    assert Endpoint(address)(13, 1) == [Failure("HTTP 500")]
    assert Endpoint(address)(14, 1) == [Failure("RemoteDisconnected")]
    assert audit(address, 0, 13, epsilon=0.1, samples=60, confidence=0.9).verdict == "violates"


@pytest.mark.statistical
def test_a_server_is_audited_in_batches(address):
    """Laplace noise of scale 1 claims 1 rightly and 0.5 wrongly. Fails by chance below 1e-6."""
    served = Endpoint(address, batch=True)
    sure = 1 - 1e-7
    assert audit(served, 0, 1, epsilon=1.0, samples=20_000, confidence=sure).verdict == "consistent"
    assert audit(served, 0, 1, epsilon=0.5, samples=20_000, confidence=sure).verdict == "violates"


def test_a_server_that_gives_too_few_is_told_so(address):
    with pytest.raises(InvalidInput, match="a JSON list of as many"):
        Endpoint(address, batch=True)(1, -1)
