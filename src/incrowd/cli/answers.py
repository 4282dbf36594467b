"""Reads what an owner types for `incrowd init`, in options or prompts: units, bounds, values, a budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from incrowd.errors import InvalidInput

Schema = Mapping[str, Mapping[str, str]]
"""Table -> column -> the engine's type."""
Unit = str | Mapping[str, str]
_FORM = {"bounds": "age=0:120", "domain": "sex=female,male"}


@dataclass
class Answers:
    """What the owner said, keyed as `catalog.propose` takes it."""

    unit: dict[str, Unit] = field(default_factory=dict)
    bounds: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    domains: dict[str, list[Any]] = field(default_factory=dict)
    budget: tuple[float, float] | None = None


def read_answers(
    schema: Schema, units: list[str], bounds: list[str], domains: list[str], budget: str | None
) -> Answers:
    """The owner's answers from the options --unit, --bounds, --domain and --budget."""
    return Answers(
        unit=read_units(units, schema),
        bounds={key: read_pair(text) for key, text in keyed(bounds, schema, "bounds").items()},
        domains={
            key: read_values(text, type_of(key, schema))
            for key, text in keyed(domains, schema, "domain").items()
        },
        budget=None if budget is None else read_budget(budget),
    )


def columns_of(unit: Unit | None) -> tuple[str, ...]:
    """The columns that a unit names."""
    if unit is None:
        return ()
    return (unit,) if isinstance(unit, str) else tuple(unit.values())


def read_units(texts: list[str], schema: Schema) -> dict[str, Unit]:
    """The unit of each table: --unit user_id sets it for every table, --unit people=user_id for one."""
    units: dict[str, Unit] = {}
    for text in texts:
        table, sign, column = text.partition("=")
        if not sign:
            units |= {name: read_unit(text, columns) for name, columns in schema.items() if name not in units}
        elif table not in schema:
            raise InvalidInput(f"--unit names a table {table}, but the files hold {', '.join(schema)}.")
        else:
            units[table] = read_unit(column, schema[table])
    return units


def read_unit(text: str, columns: Mapping[str, str]) -> Unit:
    """A unit from text: row, a column, or column/partition.

    >>> read_unit("user_id/day", {"user_id": "BIGINT", "day": "DATE"})
    {'column': 'user_id', 'per': 'day'}
    """
    parts = [part.strip() for part in text.replace(" per ", "/").split("/")]
    if parts == ["row"]:
        return "row"
    unknown = [part for part in parts if part not in columns]
    if unknown or len(parts) > 2:
        raise InvalidInput(f"The unit {text!r} is not row, nor among the columns {', '.join(columns)}.")
    return parts[0] if len(parts) == 1 else {"column": parts[0], "per": parts[1]}


def keyed(options: list[str], schema: Schema, option: str) -> dict[str, str]:
    """Options of the form column=text, keyed by table.column."""
    known = {f"{table}.{column}": column for table, columns in schema.items() for column in columns}
    texts: dict[str, str] = {}
    for text in options:
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
        texts |= dict.fromkeys(keys, rest)
    return texts


def read_pair(text: str) -> tuple[Any, Any]:
    """Two bounds from low:high, or from low..high where the values contain colons.

    >>> read_pair("0:120"), read_pair("2020-01-01:2024-12-31")[0].year
    ((0, 120), 2020)
    """
    from incrowd.catalog.reading import scalar

    low, sign, high = text.partition("..") if ".." in text else text.partition(":")
    try:
        ends = tuple(scalar(end.strip(), plain=True) for end in (low, high))
    except ValueError:
        raise InvalidInput(f"{text!r} holds a date that does not exist.") from None
    if not sign or any(isinstance(end, str | bool | None) for end in ends):
        raise InvalidInput(f"{text!r} are not two bounds; write low:high, such as 0:120.")
    if type(ends[0]) is type(ends[1]) and ends[0] > ends[1]:
        raise InvalidInput(f"The bounds {text!r} start above their end; write the lower one first.")
    return ends[0], ends[1]


def type_of(key: str, schema: Schema) -> str | None:
    """The catalog's type of table.column."""
    from incrowd.catalog import column_type

    table, _, column = key.partition(".")
    return column_type(schema[table][column])


def read_values(text: str, kind: str | None = "text") -> list[Any]:
    """Values separated by commas, read as the column's type.

    >>> read_values("1, 2"), read_values("1, 2", "integer")
    (['1', '2'], [1, 2])
    """
    from incrowd.catalog.reading import scalar

    values = [value.strip() for value in text.split(",")]
    if not all(values):
        raise InvalidInput(f"{text!r} holds an empty value; write the values with one comma between them.")
    try:
        return [scalar(value, plain=kind != "text") for value in values]
    except ValueError:
        raise InvalidInput(f"{text!r} holds a date that does not exist.") from None


def read_budget(text: str) -> tuple[float, float]:
    """A budget from epsilon or epsilon,delta.

    >>> read_budget("1,1e-6"), read_budget("0.5")
    ((1.0, 1e-06), (0.5, 0.0))
    """
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if (
        len(numbers) not in (1, 2)
        or not 0 < numbers[0] < float("inf")
        or not 0 <= (numbers[1:] or [0.0])[0] < 1
    ):
        raise InvalidInput(f"The budget {text!r} is not epsilon,delta; write two numbers such as 1,1e-6.")
    return numbers[0], (numbers[1:] or [0.0])[0]
