"""`incrowd attack`: lists the attacks, or runs one or all of them and prints their reports.

Exit status: 0 done, 1 a guarantee was found broken, 2 wrong input.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.adversary.commands import pictures
from incrowd.adversary.commands.terminal import BROKEN, Picture, spinner
from incrowd.cli import options, screen
from incrowd.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

    from incrowd.adversary.attacks.outcome import Report
    from incrowd.adversary.commands.roster import Entry, Wish

Name = Annotated[
    str | None,
    typer.Argument(metavar="NAME", show_default=False, help="The attack, or all; a list if left out."),
]
File = Annotated[
    Path | None,
    typer.Option("--file", metavar="TABLE-FILE", help="A table of people to attack: CSV or Parquet."),
]
Known = Annotated[
    str | None, typer.Option("--known", metavar="COLUMNS", help="What the attacker knows, as age,zip.")
]
Secret = Annotated[
    str | None,
    typer.Option("--secret", metavar="SQL", help="What she is after, as in \"illness = 'flu'\"."),
]
People = Annotated[int | None, typer.Option("--people", metavar="N", help="How many people are in the data.")]
Epsilon = Annotated[
    float | None,
    typer.Option(
        "--epsilon", "-e", parser=options.number, metavar="NUMBER", help="What the private release has."
    ),
]
Seed = Annotated[
    int | None,
    typer.Option("--seed", metavar="N", help="Fixes who is attacked; noise is never fixed."),
]


def attack(
    name: Name = None,
    file: File = None,
    known: Known = None,
    secret: Secret = None,
    people: People = None,
    epsilon: Epsilon = None,
    seed: Seed = None,
    picture: Picture = None,
    json: options.Json = False,
) -> None:
    """Attack releases of a table: what falls, and what a guarantee holds."""
    if name is None:
        _list_attacks(json)
        return
    attacks = _choose(name, own_table=bool(file or known or secret or people))
    if picture is not None:
        pictures.check(picture)
    wish = _wish(file, people, known, secret, epsilon, seed)
    reports = _print_reports(attacks, wish, shown=not json)
    if json:
        _print_json(reports, several=_means_all(name))
    if picture is not None:
        pictures.save([report.plot() for report in reports], picture)
    if not all(report.holds for report in reports):
        raise typer.Exit(BROKEN)


def _list_attacks(json: bool) -> None:
    from incrowd.adversary.commands import render, roster

    if json:
        screen.emit_json(
            {"attacks": [{"name": entry.name, "about": entry.about} for entry in roster.ATTACKS]}
        )
    else:
        screen.console().print(render.listed(roster.ATTACKS))


def _means_all(name: str) -> bool:
    return name.strip().casefold() == "all"


def _choose(name: str, *, own_table: bool) -> Sequence[Entry]:
    """The attack of this name, or all of them, which run on their own tables only."""
    from incrowd.adversary.commands import roster

    if not _means_all(name):
        return (roster.find(name),)
    if own_table:
        raise InvalidInput(
            "All attacks together run on their own tables: leave out --file, --known, --secret and --people, "
            "or name one attack."
        )
    return roster.ATTACKS


def _wish(
    file: Path | None,
    people: int | None,
    known: str | None,
    secret: str | None,
    epsilon: float | None,
    seed: int | None,
) -> Wish:
    """The options, checked and read."""
    from incrowd.adversary.commands.roster import Wish

    if seed is not None and seed < 0:
        raise InvalidInput(f"--seed must be 0 or more, not {seed}.")
    if epsilon is not None and not 0 < epsilon < 700:
        raise InvalidInput("--epsilon must be a number above 0 and below 700.")
    columns = tuple(column.strip() for column in known.split(",")) if known else None
    table = None if file is None else _read(file)
    return Wish(table, people, columns, secret, epsilon, seed)


def _read(file: Path) -> pa.Table:
    """A whole table from a file."""
    import duckdb

    from incrowd.cli.discovery import read_tables

    tables = read_tables([str(file)], Path.cwd())
    kind = next(iter(tables[0].source))
    if len(tables) > 1 or kind not in ("csv", "parquet"):
        raise InvalidInput(f"{file} must hold one table: give a .csv or .parquet file.")
    reader = "read_csv(?, header = true)" if kind == "csv" else "read_parquet(?)"
    with duckdb.connect() as engine:
        try:
            rows: pa.Table = engine.sql(f"FROM {reader}", params=[str(file)]).to_arrow_table()
            return rows
        except duckdb.Error:
            # The engine's own words quote rows of the file.
            raise InvalidInput(f"{file} cannot be read as a {kind} file; check that it is one.") from None


def _print_reports(attacks: Sequence[Entry], wish: Wish, *, shown: bool) -> list[Report]:
    """Run the attacks and print each report as soon as it is there, if `shown`."""
    from incrowd.adversary.commands import render

    reports = []
    for place, report in enumerate(_run(attacks, wish)):
        if shown:
            if place:
                print()
            screen.console().print(render.report_page(report))
        reports.append(report)
    return reports


def _run(attacks: Sequence[Entry], wish: Wish) -> Iterator[Report]:
    for place, entry in enumerate(attacks, start=1):
        with spinner(entry.name if len(attacks) == 1 else f"{entry.name} ({place} of {len(attacks)})"):
            report = entry.run(wish)
        yield report


def _print_json(reports: Sequence[Report], *, several: bool) -> None:
    contents = [report.to_dict() for report in reports]
    screen.emit_json({"attacks": contents} if several else contents[0])
