"""`incrowd init`: a first curator.yaml from real tables.

Types come from the schema (for CSV, which has none, they are guessed from rows, and the file says so).
Bounds, domains, the unit and the budget come from the owner alone: nothing is ever filled in from the rows,
because a bound that was read off the data is published with every answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from incrowd.cli import options, screen
from incrowd.cli.tables import TableFile, read_tables
from incrowd.errors import IncrowdError, InvalidInput

T = TypeVar("T")
_RULES = (
    "Answer from what you know without looking at the data: a form's limits, a law, a code list. "
    "A bound or a list of values that was read off the rows is published with every answer; that is a leak. "
    "Press Enter to leave something open."
)


@dataclass
class Answers:
    """What the owner said, keyed as `catalog.propose` takes it."""

    unit: dict[str, str | Mapping[str, str]] = field(default_factory=dict)
    bounds: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    domains: dict[str, list[Any]] = field(default_factory=dict)
    budget: tuple[float, float] | None = None


def init(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="TABLE-FILE...", show_default=False, help="CSV, Parquet or DuckDB files."),
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
        unit=_units(unit or [], schema),
        bounds={key: _pair(text) for key, text in _keyed(bounds or [], schema, "bounds").items()},
        domains={
            key: _values(text, _type_of(key, schema))
            for key, text in _keyed(domain or [], schema, "domain").items()
        },
        budget=None if budget is None else _budget(budget),
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
            found = _prompt(question.text, partial(_unit, columns=schema[table]))
            if found is not None:
                answers.unit[table] = found
        elif (
            question.field == "unit"
            or question.key in answers.bounds
            or question.key in answers.domains
            or column in _columns_of(answers.unit.get(table))
        ):
            continue
        elif question.field == "bounds":
            pair = _prompt(f"{question.text} (low:high)", _pair)
            if pair is not None:
                answers.bounds[question.key] = pair
        else:
            values = _prompt(f"{question.text} (a,b,c)", _values)
            if values is not None:
                answers.domains[question.key] = values
    if answers.budget is None:
        answers.budget = _prompt(
            "What may everything that anyone learns add up to? (epsilon,delta such as 1,1e-6)", _budget
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


def _columns_of(unit: str | Mapping[str, str] | None) -> tuple[str, ...]:
    if unit is None:
        return ()
    return (unit,) if isinstance(unit, str) else tuple(unit.values())


def _units(given: list[str], schema: Mapping[str, Mapping[str, str]]) -> dict[str, str | Mapping[str, str]]:
    """--unit user_id for every table, --unit people=user_id for one."""
    found: dict[str, str | Mapping[str, str]] = {}
    for text in given:
        table, sign, column = text.partition("=")
        if not sign:
            found |= {name: _unit(text, columns) for name, columns in schema.items() if name not in found}
        elif table not in schema:
            raise InvalidInput(f"--unit names a table {table}, but the files hold {', '.join(schema)}.")
        else:
            found[table] = _unit(column, schema[table])
    return found


def _unit(text: str, columns: Mapping[str, str]) -> str | Mapping[str, str]:
    """row, a column, or column/partition.

    >>> _unit("user_id/day", {"user_id": "BIGINT", "day": "DATE"})
    {'column': 'user_id', 'per': 'day'}
    """
    parts = [part.strip() for part in text.replace(" per ", "/").split("/")]
    if parts == ["row"]:
        return "row"
    unknown = [part for part in parts if part not in columns]
    if unknown or len(parts) > 2:
        raise InvalidInput(f"The unit {text!r} is not row, nor among the columns {', '.join(columns)}.")
    return parts[0] if len(parts) == 1 else {"column": parts[0], "per": parts[1]}


def _keyed(given: list[str], schema: Mapping[str, Mapping[str, str]], option: str) -> dict[str, str]:
    """Options of the form column=text, keyed by table.column."""
    known = {f"{table}.{column}": column for table, columns in schema.items() for column in columns}
    found: dict[str, str] = {}
    for text in given:
        name, sign, rest = text.partition("=")
        if not sign or not rest:
            raise InvalidInput(
                f"--{option} needs a column and its values, as in --{option} {_FORM[option]}, not {text!r}."
            )
        keys = [key for key, column in known.items() if name in (key, column)]
        if not keys:
            raise InvalidInput(
                f"--{option} names a column {name}, but there are {', '.join(known.values())}."
            )
        found |= dict.fromkeys(keys, rest)
    return found


_FORM = {"bounds": "age=0:120", "domain": "sex=female,male"}


def _pair(text: str) -> tuple[Any, Any]:
    """Two values: low:high, or low..high for what holds colons itself.

    >>> _pair("0:120"), _pair("2020-01-01:2024-12-31")[0].year
    ((0, 120), 2020)
    """
    from incrowd.catalog.reading import scalar

    low, sign, high = text.partition("..") if ".." in text else text.partition(":")
    try:
        ends = tuple(scalar(each.strip(), plain=True) for each in (low, high))
    except ValueError:
        raise InvalidInput(f"{text!r} holds a date that does not exist.") from None
    if not sign or any(isinstance(each, str | bool | None) for each in ends):
        raise InvalidInput(f"{text!r} are not two bounds; write low:high, such as 0:120.")
    if type(ends[0]) is type(ends[1]) and ends[0] > ends[1]:
        raise InvalidInput(f"The bounds {text!r} start above their end; write the lower one first.")
    return ends[0], ends[1]


def _type_of(key: str, schema: Mapping[str, Mapping[str, str]]) -> str | None:
    from incrowd.catalog import column_type

    table, _, column = key.partition(".")
    return column_type(schema[table][column])


def _values(text: str, kind: str | None = "text") -> list[Any]:
    """Values between commas, as the column's type has them.

    >>> _values("1, 2"), _values("1, 2", "integer")
    (['1', '2'], [1, 2])
    """
    from incrowd.catalog.reading import scalar

    values = [each.strip() for each in text.split(",")]
    if not all(values):
        raise InvalidInput(f"{text!r} holds an empty value; write the values with one comma between them.")
    try:
        return [scalar(each, plain=kind != "text") for each in values]
    except ValueError:
        raise InvalidInput(f"{text!r} holds a date that does not exist.") from None


def _budget(text: str) -> tuple[float, float]:
    """epsilon, or epsilon,delta.

    >>> _budget("1,1e-6"), _budget("0.5")
    ((1.0, 1e-06), (0.5, 0.0))
    """
    try:
        numbers = [float(each) for each in text.split(",")]
    except ValueError:
        numbers = []
    if (
        len(numbers) not in (1, 2)
        or not 0 < numbers[0] < float("inf")
        or not 0 <= (numbers[1:] or [0.0])[0] < 1
    ):
        raise InvalidInput(f"The budget {text!r} is not epsilon,delta; write two numbers such as 1,1e-6.")
    return numbers[0], (numbers[1:] or [0.0])[0]
