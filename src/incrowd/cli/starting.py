"""`incrowd init`: a first curator.yaml from real tables.

Types come from the schema (for CSV, which has none, they are guessed from rows, and the file says so).
Bounds, domains, the unit and the budget come from the owner alone: nothing is ever filled in from the rows,
because a bound that was read off the data is published with every answer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from incrowd.cli import options, screen
from incrowd.cli.answers import (
    Answers,
    columns_of,
    read_answers,
    read_budget,
    read_pair,
    read_unit,
    read_values,
)
from incrowd.cli.discovery import TableFile, read_tables
from incrowd.errors import IncrowdError, InvalidInput

T = TypeVar("T")
_RULES = (
    "Answer from what you know without looking at the data: a form's limits, a law, a code list. "
    "A bound or a list of values that was read off the rows is published with every answer; that is a leak. "
    "Press Enter to leave something open."
)


Files = Annotated[
    list[str],
    typer.Argument(
        metavar="TABLE-FILE...",
        show_default=False,
        help="CSV, Parquet or DuckDB files, or the URL of a database.",
    ),
]
Out = Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The file to write.")]
UnitTexts = Annotated[
    list[str] | None,
    typer.Option(
        "--unit", metavar="[TABLE=]COLUMN", help="Whom to protect: a column, column/partition, or row."
    ),
]
BoundsTexts = Annotated[
    list[str] | None,
    typer.Option("--bounds", metavar="COLUMN=LOW:HIGH", help="Bounds of a column, as in age=0:120."),
]
DomainTexts = Annotated[
    list[str] | None,
    typer.Option("--domain", metavar="COLUMN=A,B,C", help="The public values of a column."),
]
BudgetText = Annotated[
    str | None,
    typer.Option("--budget", metavar="EPSILON[,DELTA]", help="The total over all analysts, as in 1,1e-6."),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing; mark what is open with FILL.")]
Force = Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")]


@dataclass(frozen=True)
class Draft:
    """A proposed catalog, before it is written."""

    tables: list[TableFile]
    text: str
    missing: list[str]
    """What the owner must still fill in."""

    @property
    def schema(self) -> dict[str, Mapping[str, str]]:
        """Table -> column -> the engine's type."""
        return schema_of(self.tables)

    @property
    def guessed(self) -> bool:
        """Whether some types were guessed from rows."""
        return any(table.guessed for table in self.tables)


@dataclass(frozen=True)
class Account:
    """The ledger that the file names, the id that ties them together, and whether it is there already."""

    ledger: str | None
    identity: str | None
    kept: bool = False


def init(
    files: Files,
    out: Out = options.CATALOG,
    unit: UnitTexts = None,
    bounds: BoundsTexts = None,
    domain: DomainTexts = None,
    budget: BudgetText = None,
    yes: Yes = False,
    force: Force = False,
    json: options.Json = False,
) -> None:
    """Make a curator.yaml from real tables, asking for what only the owner knows, and found its ledger."""
    _check_place(out, force)
    tables = read_tables(files, out.parent)
    answers = read_answers(schema_of(tables), unit or [], bounds or [], domain or [], budget)
    if not yes and not json:
        _ask_owner(schema_of(tables), answers)
    account = _account(out)
    draft = _draft(tables, answers, account)
    _check_loads(draft, out)
    out.write_text(draft.text, encoding="utf-8")
    if not draft.missing and not account.kept:
        _found(out)
    if json:
        _report_json(out, draft)
    else:
        _report(out, draft)


def schema_of(tables: list[TableFile]) -> dict[str, Mapping[str, str]]:
    """Table -> column -> the engine's type."""
    return {table.name: table.columns for table in tables}


def _check_place(out: Path, force: bool) -> None:
    if out.exists() and not force:
        raise InvalidInput(
            f"{out} is there already; choose another file with --out, or replace it with --force."
        )
    if not out.parent.is_dir():
        raise InvalidInput(f"The folder {out.parent} does not exist; make it first.")


def _account(out: Path) -> Account:
    """The ledger of the file that is replaced, or a new one; InvalidInput if the place is taken."""
    from incrowd.catalog import load
    from incrowd.catalog.identity import new_id

    try:
        old = load(out) if out.exists() else None
    except IncrowdError:
        old = None
    ledger = f"{out.resolve().stem}.ledger"
    place = str(out.parent / ledger) if old is None else old.ledger_url or ""
    if "://" not in place and not os.path.lexists(place):
        if old is not None and old.id is not None:
            raise InvalidInput(
                f"{out} has an id, so it had a ledger, which is not at {place} any more; bring it back with "
                "incrowd ledger restore, or give up that account, with all that was spent on it, by incrowd "
                "ledger found --give-up."
            )
        return Account(ledger, new_id())
    if old is None:
        raise InvalidInput(f"There is a ledger at {place} already, of another file; choose another --out.")
    return Account(old.ledger, old.id, kept=True)


def _found(out: Path) -> None:
    from incrowd.catalog import load
    from incrowd.curator import Ledger

    declared = load(out)
    Ledger.found(declared.ledger_url, declared).close()


def _draft(tables: list[TableFile], answers: Answers, account: Account) -> Draft:
    from incrowd.catalog.identity import account_lines

    missing = [f"the unit of {table.name}" for table in tables if table.name not in answers.unit]
    if answers.budget is None:
        missing.append("the budget")
    # An id says that a ledger was founded, which comes once the file is complete.
    identity = account.identity if account.kept or not missing else None
    text = f"{_text(tables, answers)}\n{account_lines(account.ledger, identity)}"
    return Draft(tables, text, missing)


def _check_loads(draft: Draft, out: Path) -> None:
    """Refuse a complete file that the catalog would refuse, before anything is written."""
    from incrowd.catalog import parse

    if not draft.missing:
        parse(draft.text, name=out.name)


def _report_json(out: Path, draft: Draft) -> None:
    screen.emit_json(
        {
            "file": str(out),
            "tables": draft.schema,
            "missing": draft.missing,
            "types_guessed_from_rows": draft.guessed,
            "text": draft.text,
        }
    )


def _report(out: Path, draft: Draft) -> None:
    console = screen.console()
    tables = ", ".join(f"{table.name} ({len(table.columns)} columns)" for table in draft.tables)
    console.print(f"Wrote {out}: {tables}.")
    if draft.guessed:
        console.print(
            "The types of CSV columns were guessed from rows of the file; check them. No value was written."
        )
    if draft.missing:
        console.print(
            f"Before it can be used, replace FILL for {' and '.join(draft.missing)}, and run "
            "incrowd ledger found."
        )
    else:
        where = "" if str(out) == str(options.CATALOG) else f" --catalog {out}"
        console.print(f'Try: incrowd price "SELECT COUNT(*) FROM {draft.tables[0].name}"{where}')
        console.print(
            f"Answers get narrower once you have spent a part of the budget on what people contribute: "
            f"incrowd tune{where} --dry-run"
        )


def _text(tables: list[TableFile], answers: Answers) -> str:
    """The proposed file, with a source for each table file."""
    from incrowd.catalog import propose
    from incrowd.catalog.propose import WARNING
    from incrowd.catalog.writing import inline, scalar

    sources = {table.source_name: table.source for table in tables}
    text = propose(
        schema_of(tables),
        source=tables[0].source,
        unit=answers.unit,
        bounds=answers.bounds,
        domains=answers.domains,
        budget=answers.budget,
    )
    if any(table.guessed for table in tables):
        first = WARNING.splitlines()[0]
        text = text.replace(
            first,
            "# Proposed by incrowd init. CSV declares no types: these were guessed from rows, so check them.",
            1,
        )
    # `propose` writes one source; here each file is a source, and each table names its file.
    declared = "\n".join(f"  {scalar(name)}: {inline(source)}" for name, source in sources.items())
    text = text.replace(f"  main: {inline(tables[0].source)}", declared, 1)
    head, *parts = text.split("\n    source: main\n")
    for table, part in zip(tables, parts, strict=True):
        head += f"\n    source: {scalar(table.source_name)}\n{part}"
    return head


def _ask_owner(schema: Mapping[str, Mapping[str, str]], answers: Answers) -> None:
    """Ask the owner for whatever the options left out, and add it to `answers`."""
    from incrowd.catalog import questions

    screen.aside().print(_RULES)
    for question in questions(schema):
        table, _, column = question.key.partition(".")
        if question.field == "unit" and table not in answers.unit:
            unit = _prompt(question.text, partial(read_unit, columns=schema[table]))
            if unit is not None:
                answers.unit[table] = unit
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
    """Ask until `read` accepts the answer; None for an empty one."""
    while True:
        typed = str(typer.prompt(text, default="", show_default=False, prompt_suffix=" ", err=True)).strip()
        if not typed:
            return None
        try:
            return read(typed)
        except IncrowdError as error:
            screen.complain(str(error))
