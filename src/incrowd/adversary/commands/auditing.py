"""What `incrowd audit` was told, as something that `audit` can run.

Knows nothing of bounds, and prints nothing.
"""

from __future__ import annotations

import importlib
import json
import os
import shlex
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from incrowd.adversary.audit import Audit, Batch, Command, Endpoint, Failure, audit, neighbours
from incrowd.adversary.audit.runs import Progress, Runner, runner_of
from incrowd.errors import IncrowdError, InvalidInput

SAMPLES = 20_000
STARTED_EACH_TIME = 1_000
"""Samples of a command that is started anew for each: more than this takes minutes."""
REHEARSALS = 3


@dataclass(frozen=True)
class Subject:
    """What is audited: how to run it, and its name in the user's words."""

    name: str
    runner: Runner
    batch: bool
    samples: int
    """How many runs on either neighbour are usual for its kind."""

    def rehearse(self, *data: Any) -> None:
        """Refuse what fails whatever it is given: two failures look alike, and would seem consistent."""
        if self.batch:
            return
        outputs = [output for each in data for output in self.runner(each, REHEARSALS)]
        kinds = {each.kind if isinstance(each, Failure) else None for each in outputs}
        if None not in kinds:
            raise InvalidInput(
                f"{self.name} fails on x and on x' alike ({', '.join(sorted(map(str, kinds)))}): run it by "
                "itself, and mend it first."
            )


def command_subject(line: str, *, batch: bool, workers: int | None, seconds: float) -> Subject:
    """A command line; several are started at a time, one for each core unless told."""
    try:
        words = tuple(shlex.split(line))
    except ValueError:
        words = ()
    if not words:
        raise InvalidInput(f"--command {line!r} is no command line: give one such as 'python noisy.py'.")
    runner = Command(words, batch, seconds, workers or os.cpu_count() or 1)
    return Subject(line, runner, batch, SAMPLES if batch else STARTED_EACH_TIME)


def endpoint_subject(url: str, *, batch: bool, workers: int | None, seconds: float) -> Subject:
    """An HTTP address; one request at a time unless told."""
    return Subject(url, Endpoint(url, batch, seconds, workers or 1), batch, SAMPLES if batch else 5_000)


def function_subject(name: str, *, batch: bool) -> Subject:
    """A function, or a mechanism with a release, by module and name; modules of this folder come first."""
    module, _, inside = name.partition(":")
    if not module or not inside:
        raise InvalidInput(f"--mechanism {name!r} names no function: write it as package.module:function.")
    if not {"", str(Path.cwd())} & set(sys.path):
        sys.path.insert(0, str(Path.cwd()))
    try:
        found: Any = importlib.import_module(module)
        for part in inside.split("."):
            found = getattr(found, part)
    except Exception as error:
        raise InvalidInput(
            f"{name} cannot be loaded ({type(error).__name__}): check the module, the function and the "
            "folder."
        ) from error
    if not batch:
        return Subject(name, runner_of(found), False, SAMPLES)
    if not callable(found):
        raise InvalidInput(f"{name} is no function: --batch needs one of the data and the number of runs.")

    def many(data: Any, runs: int) -> Any:
        try:
            return found(data, runs)
        except IncrowdError:
            raise
        except Exception as error:
            raise InvalidInput(
                f"{name} failed ({type(error).__name__}) when asked for {runs} outputs at once: with --batch "
                "a function takes the data and the number of runs, and fails for none."
            ) from error

    return Subject(name, Batch(many), True, SAMPLES)


def parsed(option: str, text: str) -> Any:
    """Data from JSON, or from a file of it whose name comes after @."""
    try:
        return json.loads(Path(text[1:]).read_text(encoding="utf-8") if text.startswith("@") else text)
    except ValueError:
        raise InvalidInput(
            f"{option} must be JSON such as '[1, 2, 3]', or @ and the name of a file of it."
        ) from None


@dataclass(frozen=True)
class Plan:
    """An audit to run: the claim, and one pair of neighbours or values to search over."""

    subject: Subject
    epsilon: float
    delta: float
    samples: int
    confidence: float
    x: Any
    x_prime: Any = None
    values: tuple[Any, ...] = ()
    relation: Any = "add-remove"

    @property
    def searches(self) -> bool:
        """Whether a pair is searched for."""
        return bool(self.values)

    def run(self, progress: Progress | None = None) -> Audit:
        """The audit; whatever the mechanism prints goes to standard error."""
        pairs = list(neighbours(self.x, self.values, self.relation)) if self.searches else None
        if pairs == []:
            raise InvalidInput(
                "--x has no neighbour with these --values: give records to replace, or more values."
            )
        with redirect_stdout(sys.stderr):
            self.subject.rehearse(*(pairs[0] if pairs else (self.x, self.x_prime)))
            return audit(
                self.subject.runner,
                None if pairs else self.x,
                None if pairs else self.x_prime,
                epsilon=self.epsilon,
                delta=self.delta,
                samples=self.samples,
                confidence=self.confidence,
                search=pairs,
                # Progress is told between parts, and a batch is asked for as a whole.
                progress=None if self.subject.batch else progress,
            )
