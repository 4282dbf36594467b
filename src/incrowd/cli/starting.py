"""`incrowd init`: a first curator.yaml from real tables.

Types come from the schema (for CSV, which has none, they are guessed from rows, and the file says so).
Bounds, domains, the unit and the budget come from the owner alone: nothing is ever filled in from the rows,
because a bound that was read off the data is published with every answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from incrowd.cli import options, screen
from incrowd.cli.answers import (
    Answers,
    columns_of,
    keyed,
    read_budget,
    read_pair,
    read_unit,
    read_units,
    read_values,
    type_of,
)
from incrowd.cli.discovery import TableFile, read_tables
from incrowd.errors import IncrowdError, InvalidInput

T = TypeVar("T")
_RULES = (
    "Answer from what you know without looking at the data: a form's limits, a law, a code list. "
    "A bound or a list of values that was read off the rows is published with every answer; that is a leak. "
    "Press Enter to leave something open."
)


def init(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="TABLE-FILE...",
            show_default=False,
            help="CSV, Parquet or DuckDB files, or the URL of a database.",
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The file to write.")
    ] = options.CATALOG,
    unit: Annotated[
        list[str] | None,
        typer.Option(
            "--unit", metavar="[TABLE=]COLUMN", help="Whom to protect: a column, column/partition, or row."
        ),
    ] = None,
    bounds: Annotated[
        list[str] | None,
        typer.Option("--bounds", metavar="COLUMN=LOW:HIGH", help="Bounds of a column, as in age=0:120."),
    ] = None,
    domain: Annotated[
        list[str] | None,
        typer.Option("--domain", metavar="COLUMN=A,B,C", help="The public values of a column."),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget", metavar="EPSILON[,DELTA]", help="The total over all analysts, as in 1,1e-6."
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Ask nothing; mark what is open with FILL.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
    json: options.Json = False,
) -> None:
    """Make a curator.yaml from real tables, asking for what only the owner knows."""
    from incrowd.catalog import parse

    if out.exists() and not force:
        raise InvalidInput(
            f"{out} is there already; choose another file with --out, or replace it with --force."
        )
    if not out.parent.is_dir():
        raise InvalidInput(f"The folder {out.parent} does not exist; make it first.")
    tables = read_tables(files, out.parent)
    schema = {each.name: each.columns for each in tables}
    answers = Answers(
        unit=read_units(unit or [], schema),
        bounds={key: read_pair(text) for key, text in keyed(bounds or [], schema, "bounds").items()},
        domains={
            key: read_values(text, type_of(key, schema))
            for key, text in keyed(domain or [], schema, "domain").items()
        },
        budget=None if budget is None else read_budget(budget),
    )
    if not yes and not json:
        _ask_owner(schema, answers)
    text = _text(tables, answers)
    missing = [f"the unit of {name}" for name in schema if name not in answers.unit]
    missing += ["the budget"] if answers.budget is None else []
    if not missing:
        parse(text, name=out.name)  # a wrong answer is told before anything is written
    out.write_text(text, encoding="utf-8")
    guessed = any(each.guessed for each in tables)
    if json:
        screen.emit_json(
            {
                "file": str(out),
                "tables": schema,
                "missing": missing,
                "types_guessed_from_rows": guessed,
                "text": text,
            }
        )
        return
    _report(out, tables, missing, guessed)


def _report(out: Path, tables: list[TableFile], missing: list[str], guessed: bool) -> None:
    console = screen.console()
    console.print(
        f"Wrote {out}: {', '.join(f'{each.name} ({len(each.columns)} columns)' for each in tables)}."
    )
    if guessed:
        console.print(
            "The types of CSV columns were guessed from rows of the file; check them. No value was written."
        )
    if missing:
        console.print(f"Before it can be used, replace FILL for {' and '.join(missing)}.")
    else:
        name = tables[0].name
        console.print(
            f'Try: incrowd price "SELECT COUNT(*) FROM {name}"'
            + ("" if str(out) == str(options.CATALOG) else f" --catalog {out}")
        )


def _text(tables: list[TableFile], answers: Answers) -> str:
    """The proposed file, with a source for each table file."""
    from incrowd.catalog import propose
    from incrowd.catalog.propose import WARNING
    from incrowd.catalog.writing import inline, scalar

    sources = {each.source_name: each.source for each in tables}
    schema = {each.name: each.columns for each in tables}
    text = propose(
        schema,
        source=tables[0].source,
        unit=answers.unit,
        bounds=answers.bounds,
        domains=answers.domains,
        budget=answers.budget,
    )
    if any(each.guessed for each in tables):
        first = WARNING.splitlines()[0]
        text = text.replace(
            first,
            "# Proposed by incrowd init. CSV declares no types: these were guessed from rows, so check them.",
            1,
        )
    # The proposal knows one source; here each file is one, and each table names the file that it is in.
    declared = "\n".join(f"  {scalar(name)}: {inline(source)}" for name, source in sources.items())
    text = text.replace(f"  main: {inline(tables[0].source)}", declared, 1)
    head, *parts = text.split("\n    source: main\n")
    for table, part in zip(tables, parts, strict=True):
        head += f"\n    source: {scalar(table.source_name)}\n{part}"
    return head


def _ask_owner(schema: Mapping[str, Mapping[str, str]], answers: Answers) -> None:
    """Ask what the options did not say."""
    from incrowd.catalog import questions

    screen.aside().print(_RULES)
    for question in questions(schema):
        table, _, column = question.key.partition(".")
        if question.field == "unit" and table not in answers.unit:
            found = _prompt(question.text, partial(read_unit, columns=schema[table]))
            if found is not None:
                answers.unit[table] = found
        elif (
            question.field == "unit"
            or question.key in answers.bounds
            or question.key in answers.domains
            or column in columns_of(answers.unit.get(table))
        ):
            continue
        elif question.field == "bounds":
            pair = _prompt(f"{question.text} (low:high)", read_pair)
            if pair is not None:
                answers.bounds[question.key] = pair
        else:
            values = _prompt(f"{question.text} (a,b,c)", read_values)
            if values is not None:
                answers.domains[question.key] = values
    if answers.budget is None:
        answers.budget = _prompt(
            "What may everything that anyone learns add up to? (epsilon,delta such as 1,1e-6)",
            read_budget,
        )


def _prompt(text: str, read: Callable[[str], T]) -> T | None:
    """An answer that can be read; None for an empty one."""
    while True:
        given = str(typer.prompt(text, default="", show_default=False, prompt_suffix=" ", err=True)).strip()
        if not given:
            return None
        try:
            return read(given)
        except IncrowdError as error:
            screen.complain(str(error))
