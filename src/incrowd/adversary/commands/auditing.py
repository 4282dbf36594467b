"""Turns the options of `incrowd audit` into a runnable plan. It computes no bounds and prints nothing."""

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
"""Samples of a command that is started anew for each run: more than this takes minutes."""
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
        """Refuse a subject that fails on all data: equal failures on both sides would look consistent."""
        if self.batch:
            return
        outputs = [output for side in data for output in self.runner(side, REHEARSALS)]
        kinds = {output.kind if isinstance(output, Failure) else None for output in outputs}
        if None not in kinds:
            raise InvalidInput(
                f"{self.name} fails on x and on x' alike ({', '.join(sorted(map(str, kinds)))}): run it by "
                "itself, and mend it first."
            )


def command_subject(line: str, *, batch: bool, workers: int | None, seconds: float) -> Subject:
    """A command line, run by as many processes at a time as `workers` says, else one per core."""
    try:
        words = tuple(shlex.split(line))
    except ValueError:
        words = ()
    if not words:
        raise InvalidInput(f"--command {line!r} is no command line: give one such as 'python noisy.py'.")
    runner = Command(words, batch, seconds, workers or os.cpu_count() or 1)
    return Subject(line, runner, batch, SAMPLES if batch else STARTED_EACH_TIME)


def endpoint_subject(url: str, *, batch: bool, workers: int | None, seconds: float) -> Subject:
    """An HTTP address, asked by as many requests at a time as `workers` says, else one."""
    return Subject(url, Endpoint(url, batch, seconds, workers or 1), batch, SAMPLES if batch else 5_000)


def function_subject(name: str, *, batch: bool) -> Subject:
    """A function, or a mechanism with a `release`, as module:name; the current folder is searched first."""
    module, _, inside = name.partition(":")
    if not module or not inside:
        raise InvalidInput(f"--mechanism {name!r} names no function: write it as package.module:function.")
    if not {"", str(Path.cwd())} & set(sys.path):
        sys.path.insert(0, str(Path.cwd()))
    try:
        target: Any = importlib.import_module(module)
        for part in inside.split("."):
            target = getattr(target, part)
    except Exception as error:
        raise InvalidInput(
            f"{name} cannot be loaded ({type(error).__name__}): check the module, the function and the "
            "folder."
        ) from error
    if not batch:
        return Subject(name, runner_of(target), False, SAMPLES)
    if not callable(target):
        raise InvalidInput(f"{name} is no function: --batch needs one of the data and the number of runs.")

    def many(data: Any, runs: int) -> Any:
        try:
            return target(data, runs)
        except IncrowdError:
            raise
        except Exception as error:
            raise InvalidInput(
                f"{name} failed ({type(error).__name__}) when asked for {runs} outputs at once: with --batch "
                "a function takes the data and the number of runs, and fails for none."
            ) from error

    return Subject(name, Batch(many), True, SAMPLES)


def parsed(option: str, text: str) -> Any:
    """Data from JSON text; @FILE reads the text from a file."""
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
        """Whether the audit searches for a pair of neighbours."""
        return bool(self.values)

    def run(self, progress: Progress | None = None) -> Audit:
        """Run the audit; whatever the mechanism prints goes to standard error."""
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
                # Progress is reported between parts, and a batch has only one.
                progress=None if self.subject.batch else progress,
            )


@dataclass(frozen=True)
class AuditOptions:
    """The options of `incrowd audit` as typed; None where one was left out."""

    command: str | None = None
    url: str | None = None
    mechanism: str | None = None
    x: str | None = None
    x_prime: str | None = None
    values: str | None = None
    relation: str = "add-remove"
    epsilon: float | None = None
    delta: float = 0.0
    samples: int | None = None
    confidence: float = 0.999
    batch: bool = False
    workers: int | None = None
    seconds: float = 60.0
    quick: bool = False

    @property
    def targets(self) -> list[str]:
        """What is to be audited; empty for Incrowd itself."""
        return [target for target in (self.command, self.url, self.mechanism) if target is not None]

    def check(self) -> None:
        """Refuse options that do not go together."""
        if len(self.targets) > 1:
            raise InvalidInput("Audit one thing at a time: --command, --url or --mechanism.")
        if not self.targets:
            needs_target = (self.x, self.x_prime, self.values, self.epsilon, self.samples, self.workers)
            if any(option is not None for option in needs_target):
                raise InvalidInput(
                    "Say what to audit: --command LINE, --url ADDRESS or --mechanism MODULE:NAME."
                )
            return
        if self.quick:
            raise InvalidInput("--quick is for the audit of Incrowd itself: use --samples for fewer runs.")
        self._claimed()
        if not self.seconds > 0 or (self.workers is not None and self.workers < 1):
            raise InvalidInput("--seconds must be above 0, and --workers at least 1.")

    def _claimed(self) -> float:
        if self.epsilon is None:
            raise InvalidInput("Say with --epsilon what is claimed; an audit tries to refute it.")
        return self.epsilon

    def subject(self) -> Subject:
        """The target with a way to run it."""
        if self.command is not None:
            return command_subject(self.command, batch=self.batch, workers=self.workers, seconds=self.seconds)
        if self.url is not None:
            return endpoint_subject(self.url, batch=self.batch, workers=self.workers, seconds=self.seconds)
        return function_subject(str(self.mechanism), batch=self.batch)

    def plan(self) -> Plan:
        """The audit of the target that was named."""
        subject = self.subject()
        samples = subject.samples if self.samples is None else self.samples
        claim = (self._claimed(), self.delta, samples, self.confidence)
        if self.x is None or (self.x_prime is None) == (self.values is None):
            raise InvalidInput(
                "Give two neighbouring data sets, --x and --x-prime; or --x, and --values that a record may "
                "have."
            )
        data = parsed("--x", self.x)
        if self.x_prime is not None:
            return Plan(subject, *claim, data, parsed("--x-prime", self.x_prime))
        values = parsed("--values", str(self.values))
        if not isinstance(data, list) or not isinstance(values, list) or not values:
            raise InvalidInput("To search for neighbours, --x and --values must be lists such as '[0, 10]'.")
        return Plan(subject, *claim, data, values=tuple(values), relation=self.relation)
