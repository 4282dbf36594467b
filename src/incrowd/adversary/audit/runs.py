"""Runs an audited target: a callable, a command line, an HTTP endpoint. Knows nothing of privacy.

A mechanism is run on two data sets. A failure of the mechanism is an output like any other (`Failure`): an
error that happens for one neighbour and not for the other tells them apart. Runs must be independent: a
mechanism that keeps something from one run for the next must be started anew for each.
"""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from incrowd.adversary.audit.outputs import Failure
from incrowd.errors import InvalidInput


class Runner(Protocol):
    """Anything that returns `runs` independent outputs of a mechanism on data."""

    def __call__(self, data: Any, runs: int, /) -> Any:
        """A sequence of outputs, or an array whose first axis is the runs."""
        ...


@dataclass(frozen=True)
class Single:
    """A callable of the data that is run once for each output."""

    function: Callable[[Any], Any]

    def __call__(self, data: Any, runs: int, /) -> list[Any]:
        """The outputs; an exception counts as one."""
        return [self._once(data) for _ in range(runs)]

    def _once(self, data: Any) -> Any:
        try:
            return self.function(data)
        except Exception as error:
            return Failure(type(error).__name__)


@dataclass(frozen=True)
class Batch:
    """A callable of the data and a number of runs that returns all outputs at once.

    >>> from incrowd.mechanisms import Laplace
    >>> noisy = Batch(lambda data, runs: Laplace(1.0).release(np.full(runs, sum(data))))
    >>> len(noisy([1, 0, 1], 500))
    500
    """

    function: Callable[[Any, int], Any]

    def __call__(self, data: Any, runs: int, /) -> Any:
        """The outputs."""
        outputs = self.function(data, runs)
        if len(outputs) != runs:
            raise InvalidInput(
                f"A batch was asked for {runs} outputs and gave {len(outputs)}: return one output for each "
                "run."
            )
        return outputs


@dataclass(frozen=True)
class Command:
    """A command line: the data as JSON on its standard input, one output as JSON on its standard output.

    With `batch`, the input is {"data": ..., "runs": n}, and the output has n lines, each of them JSON. An
    exit status other than 0 and a time-out are outputs, as is text that is no JSON. `workers` run at a time.
    """

    arguments: tuple[str, ...]
    batch: bool = False
    seconds: float = 60.0
    workers: int = 1

    def __call__(self, data: Any, runs: int, /) -> list[Any]:
        """The outputs."""
        if self.batch:
            return self._lines(data, runs)
        sent = encode(data)
        with ThreadPoolExecutor(self.workers) as pool:
            return list(pool.map(lambda _: self._once(sent), range(runs)))

    def _once(self, sent: bytes) -> Any:
        try:
            done = self._run(sent)
        except subprocess.TimeoutExpired:
            return Failure("time-out")
        return Failure(f"exit status {done.returncode}") if done.returncode else decode(done.stdout)

    def _lines(self, data: Any, runs: int) -> list[Any]:
        try:
            done = self._run(encode({"data": plain(data), "runs": runs}))
        except subprocess.TimeoutExpired:
            raise InvalidInput(
                f"{self.arguments[0]} took more than {self.seconds:g} seconds for {runs} runs: give it more "
                "seconds, or fewer samples."
            ) from None
        lines = done.stdout.splitlines()
        if done.returncode or len(lines) != runs:
            raise InvalidInput(
                f"{self.arguments[0]} was asked for {runs} lines of output and gave {len(lines)} with exit "
                f"status {done.returncode}: print one line of JSON for each run, failures included."
            )
        return [decode(line) for line in lines]

    def _run(self, sent: bytes) -> subprocess.CompletedProcess[bytes]:
        try:
            return subprocess.run(self.arguments, input=sent, capture_output=True, timeout=self.seconds)
        except OSError:
            raise InvalidInput(
                f"{self.arguments[0]} cannot be started: give a command that this machine has."
            ) from None


@dataclass(frozen=True)
class Endpoint:
    """An HTTP address: the data POSTed as JSON, an output as JSON in the response.

    With `batch`, {"data": ..., "runs": n} is sent and a JSON list of n outputs comes back. A status other
    than 200 and a time-out are outputs. `workers` requests are under way at a time.
    """

    url: str
    batch: bool = False
    seconds: float = 60.0
    workers: int = 1

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise InvalidInput(f"{self.url} is no HTTP address: begin it with http:// or https://.")

    def __call__(self, data: Any, runs: int, /) -> Sequence[Any]:
        """The outputs."""
        if self.batch:
            outputs = self._once(encode({"data": plain(data), "runs": runs}))
            if not isinstance(outputs, list) or len(outputs) != runs:
                raise InvalidInput(
                    f"{self.url} was asked for {runs} outputs: it must respond with a JSON list of as many."
                )
            return outputs
        sent = encode(data)
        with ThreadPoolExecutor(self.workers) as pool:
            return list(pool.map(lambda _: self._once(sent), range(runs)))

    def _once(self, sent: bytes) -> Any:
        request = urllib.request.Request(self.url, sent, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=self.seconds) as response:
                return decode(response.read())
        except urllib.error.HTTPError as error:
            error.close()
            return Failure(f"HTTP {error.code}")
        except urllib.error.URLError as error:
            if isinstance(error.reason, ConnectionRefusedError | socket.gaierror):
                raise InvalidInput(f"{self.url} cannot be reached: start its server first.") from None
            return Failure(type(error.reason).__name__)
        except (OSError, http.client.HTTPException) as error:
            return Failure(type(error).__name__)


Progress = Callable[[int, int], None]
"""Called with the number of runs done and the total."""
PARTS = 20


class Watched:
    """A runner that reports progress, by running in parts."""

    def __init__(self, runner: Runner, total: int, progress: Progress) -> None:
        self._runner, self._total, self._progress = runner, total, progress
        self._done = 0

    def __call__(self, data: Any, runs: int, /) -> Any:
        """The outputs of all parts."""
        parts = []
        for size in (len(part) for part in np.array_split(np.arange(runs), min(PARTS, runs))):
            parts.append(self._runner(data, size))
            self._done += size
            self._progress(self._done, self._total)
        if all(isinstance(part, np.ndarray) for part in parts):
            return np.concatenate(parts)
        return [output for part in parts for output in part]


def runner_of(mechanism: Any) -> Runner:
    """The runner of a target: a callable of the data, a list of words, an address, or one of the above."""
    if isinstance(mechanism, Single | Batch | Command | Endpoint):
        return mechanism
    if isinstance(mechanism, str):
        return Endpoint(mechanism)
    if isinstance(mechanism, Sequence) and mechanism and all(isinstance(word, str) for word in mechanism):
        return Command(tuple(mechanism))
    release = getattr(mechanism, "release", mechanism)
    if not callable(release):
        raise InvalidInput(
            "What is audited must be a callable of the data, a mechanism with a release, a command as a list "
            "of texts, or an address."
        )
    return Single(release)


def encode(value: Any) -> bytes:
    """Data as JSON."""
    return json.dumps(plain(value)).encode()


def decode(text: bytes) -> Any:
    """An output from JSON; the text itself if it is not JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return text.decode(errors="replace").strip()


def plain(value: Any) -> Any:
    """Data as JSON has it: arrays as lists, fractions as numbers.

    >>> plain({"a": np.arange(3), "b": (Fraction(1, 2), None)})
    {'a': [0, 1, 2], 'b': [0.5, None]}
    """
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Fraction):
        return float(value)
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise InvalidInput(f"Data of type {type(value).__name__} cannot be sent as JSON: give lists and numbers.")
