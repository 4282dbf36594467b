"""`incrowd attack` and `incrowd audit`: the adversary's commands, which the command line finds by itself.

Exit status: 0 done, 1 a guarantee or a claim was found broken, 2 wrong input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from incrowd.adversary.commands import auditing, pictures
from incrowd.cli import options, screen
from incrowd.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

    from incrowd.adversary.attacks.outcome import Report

BROKEN = 1
Picture = Annotated[
    Path | None,
    typer.Option("--picture", metavar="FILE", help="Save a picture, as .html, .svg or .png."),
]


def attack(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", show_default=False, help="The attack, or all; a list if left out."),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", metavar="TABLE-FILE", help="A table of people to attack: CSV or Parquet."),
    ] = None,
    known: Annotated[
        str | None, typer.Option("--known", metavar="COLUMNS", help="What the attacker knows, as age,zip.")
    ] = None,
    secret: Annotated[
        str | None,
        typer.Option("--secret", metavar="SQL", help="What she is after, as in \"illness = 'flu'\"."),
    ] = None,
    people: Annotated[
        int | None, typer.Option("--people", metavar="N", help="How many people are in the data.")
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            "--epsilon", "-e", parser=options.number, metavar="NUMBER", help="What the private release has."
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option("--seed", metavar="N", help="Fixes who is attacked; noise is never fixed."),
    ] = None,
    picture: Picture = None,
    json: options.Json = False,
) -> None:
    """Attack releases of a table: what falls, and what a guarantee holds."""
    from incrowd.adversary.commands import render as pages
    from incrowd.adversary.commands import roster

    if name is None:
        if json:
            screen.emit_json({"attacks": [{"name": e.name, "about": e.about} for e in roster.ATTACKS]})
        else:
            screen.console().print(pages.listed(roster.ATTACKS))
        return
    every = name.strip().casefold() == "all"
    chosen = roster.ATTACKS if every else (roster.find(name),)
    if every and (file or known or secret or people):
        raise InvalidInput(
            "All attacks together run on their own tables: leave out --file, --known, --secret and --people, "
            "or name one attack."
        )
    if picture is not None:
        pictures.check(picture)
    if seed is not None and seed < 0:
        raise InvalidInput(f"--seed must be 0 or more, not {seed}.")
    if epsilon is not None and not 0 < epsilon < 700:
        raise InvalidInput("--epsilon must be a number above 0 and below 700.")
    columns = tuple(each.strip() for each in known.split(",")) if known else None
    table = None if file is None else _read(file)
    wish = roster.Wish(table, people, columns, secret, epsilon, seed)
    reports: list[Report] = []
    for place, each in enumerate(chosen):
        with _spinning(f"{each.name}" + (f" ({place + 1} of {len(chosen)})" if every else "")):
            reports.append(each.run(wish))
        if not json:
            if place:
                print()
            screen.console().print(pages.report_page(reports[-1]))
    if json:
        told = [each.to_dict() for each in reports]
        screen.emit_json({"attacks": told} if every else told[0])
    if picture is not None:
        pictures.save([each.plot() for each in reports], picture)
    if not all(each.holds for each in reports):
        raise typer.Exit(BROKEN)


def _read(file: Path) -> pa.Table:
    """A whole table from a file."""
    import duckdb

    from incrowd.cli.discovery import read_tables

    found = read_tables([str(file)], Path.cwd())
    kind = next(iter(found[0].source))
    if len(found) > 1 or kind not in ("csv", "parquet"):
        raise InvalidInput(f"{file} must hold one table: give a .csv or .parquet file.")
    reader = "read_csv(?, header = true)" if kind == "csv" else "read_parquet(?)"
    with duckdb.connect() as engine:
        try:
            rows: pa.Table = engine.sql(f"FROM {reader}", params=[str(file)]).to_arrow_table()
            return rows
        except duckdb.Error:
            # The engine's own words quote rows of the file.
            raise InvalidInput(f"{file} cannot be read as a {kind} file; check that it is one.") from None


@contextmanager
def _spinning(text: str) -> Iterator[None]:
    """A sign of life on a terminal, and nothing elsewhere."""
    aside = screen.aside()
    columns = (SpinnerColumn(), TextColumn(text), TimeElapsedColumn())
    with Progress(*columns, console=aside, transient=True, disable=not aside.is_terminal) as bar:
        bar.add_task(text, total=None)
        yield


@contextmanager
def _counting() -> Iterator[Callable[[int, int], None]]:
    """A bar of runs on a terminal, and nothing elsewhere."""
    aside = screen.aside()
    columns = (
        TextColumn("running"),
        BarColumn(30),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=aside, transient=True, disable=not aside.is_terminal) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def audit(
    command: Annotated[
        str | None,
        typer.Option(
            "--command",
            metavar="LINE",
            help="A command: data as JSON on its standard input, an output on its standard output.",
        ),
    ] = None,
    url: Annotated[
        str | None, typer.Option("--url", metavar="ADDRESS", help="An HTTP address that data is POSTed to.")
    ] = None,
    mechanism: Annotated[
        str | None,
        typer.Option("--mechanism", metavar="MODULE:NAME", help="A Python function of the data."),
    ] = None,
    x: Annotated[str | None, typer.Option("--x", metavar="JSON", help="The data; @FILE reads it.")] = None,
    x_prime: Annotated[
        str | None, typer.Option("--x-prime", metavar="JSON", help="Neighbouring data; @FILE reads it.")
    ] = None,
    values: Annotated[
        str | None,
        typer.Option(
            "--values",
            metavar="JSON",
            help="In place of --x-prime: values of a record, to search for a neighbour with.",
        ),
    ] = None,
    relation: Annotated[
        str, typer.Option("--relation", metavar="KIND", help="For --values: add-remove or replace.")
    ] = "add-remove",
    epsilon: Annotated[
        float | None,
        typer.Option(
            "--epsilon",
            "-e",
            parser=options.number,
            metavar="NUMBER",
            help="The epsilon that is claimed.",
        ),
    ] = None,
    delta: Annotated[
        float,
        typer.Option("--delta", parser=options.number, metavar="NUMBER", help="The delta that is claimed."),
    ] = 0.0,
    samples: Annotated[
        int | None,
        typer.Option(
            "--samples",
            metavar="N",
            show_default=False,
            help="Runs on either neighbour: 20,000; 5,000 requests; 1,000 starts of a command.",
        ),
    ] = None,
    confidence: Annotated[
        float,
        typer.Option(
            "--confidence", parser=options.number, metavar="SHARE", help="How sure an accusation must be."
        ),
    ] = 0.999,
    batch: Annotated[
        bool,
        typer.Option("--batch", help='Ask for many outputs at once: {"data": ..., "runs": N}.'),
    ] = False,
    workers: Annotated[
        int | None, typer.Option("--workers", metavar="N", help="Commands or requests at a time.")
    ] = None,
    seconds: Annotated[
        float,
        typer.Option(
            "--seconds", parser=options.number, metavar="NUMBER", help="When a run counts as a time-out."
        ),
    ] = 60.0,
    quick: Annotated[
        bool, typer.Option("--quick", help="Without a target: fewer runs of what is not broken.")
    ] = False,
    picture: Picture = None,
    json: options.Json = False,
) -> None:
    """Prove from outputs alone that code breaks the epsilon it claims; without a target, audit Incrowd."""
    from incrowd.adversary.commands import render as pages

    targets = [each for each in (command, url, mechanism) if each is not None]
    if len(targets) > 1:
        raise InvalidInput("Audit one thing at a time: --command, --url or --mechanism.")
    if picture is not None:
        pictures.check(picture)
    if not targets:
        if any(each is not None for each in (x, x_prime, values, epsilon, samples, workers)):
            raise InvalidInput("Say what to audit: --command LINE, --url ADDRESS or --mechanism MODULE:NAME.")
        _audit_everything(quick, picture, json)
        return
    if quick:
        raise InvalidInput("--quick is for the audit of Incrowd itself: use --samples for fewer runs.")
    if epsilon is None:
        raise InvalidInput("Say with --epsilon what is claimed; an audit tries to refute it.")
    if not seconds > 0 or (workers is not None and workers < 1):
        raise InvalidInput("--seconds must be above 0, and --workers at least 1.")
    if command is not None:
        subject = auditing.command_subject(command, batch=batch, workers=workers, seconds=seconds)
    elif url is not None:
        subject = auditing.endpoint_subject(url, batch=batch, workers=workers, seconds=seconds)
    else:
        subject = auditing.function_subject(str(mechanism), batch=batch)
    plan = _plan(subject, x, x_prime, values, relation, epsilon, delta, samples, confidence)
    with _counting() as progress:
        found = plan.run(progress)
    if json:
        told: dict[str, Any] = {"target": subject.name, **found.to_dict()}
        screen.emit_json({**told, "x": found.pair[0], "x_prime": found.pair[1]})
    else:
        screen.console().print(pages.audit_page(found, plan.searches))
    if picture is not None:
        pictures.save([pictures.audit_chart(found)], picture)
    if found.verdict == "violates":
        raise typer.Exit(BROKEN)


def _plan(
    subject: auditing.Subject,
    x: str | None,
    x_prime: str | None,
    values: str | None,
    relation: str,
    epsilon: float,
    delta: float,
    samples: int | None,
    confidence: float,
) -> auditing.Plan:
    claim = (epsilon, delta, subject.samples if samples is None else samples, confidence)
    if x is None or (x_prime is None) == (values is None):
        raise InvalidInput(
            "Give two neighbouring data sets, --x and --x-prime; or --x, and --values that a record may have."
        )
    data = auditing.parsed("--x", x)
    if x_prime is not None:
        return auditing.Plan(subject, *claim, data, auditing.parsed("--x-prime", x_prime))
    searched = auditing.parsed("--values", str(values))
    if not isinstance(data, list) or not isinstance(searched, list) or not searched:
        raise InvalidInput("To search for neighbours, --x and --values must be lists such as '[0, 10]'.")
    return auditing.Plan(subject, *claim, data, values=tuple(searched), relation=relation)


def _audit_everything(quick: bool, picture: Path | None, json: bool) -> None:
    """The auditor over every mutant, every real mechanism and the curator."""
    from incrowd.adversary.audit.__main__ import audited, table
    from incrowd.adversary.audit.suite import summary

    lines = audited(quick, None)
    if json:
        screen.emit_json({"summary": summary(lines), "audits": [line.to_dict() for line in lines]})
    else:
        console = screen.console()
        console.print(table(lines))
        console.print(Text(summary(lines)))
    if picture is not None:
        pictures.save([pictures.table_chart(lines)], picture)
    if not all(line.right for line in lines):
        raise typer.Exit(BROKEN)
