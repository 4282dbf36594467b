"""Pairs of neighbouring tables: the same people, once with and once without the hostile neighbour.

They are those of `tests/backends/houses.py` (private visits and steps, public cities), so that its
grammar of questions fits; but each column has a storage type of its own, declared as some type or other, and
the unit may be anything. A *storage* is a type of some store with its values; stores turn rows into files.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from incrowd.catalog import column_type
from tests.backends.houses import CITIES
from tests.hostile import values

Rows = Mapping[str, Mapping[str, Sequence[Any]]]
"""For each private table, the raw values of each column."""

ROLES = {
    "user_id": "unit",
    "day": "number",
    **dict.fromkeys(("x", "f", "n", "p", "cat"), "number"),
    **dict.fromkeys(("city", "grp", "t"), "text"),
    "b": "truth",
    **dict.fromkeys(("d", "ts"), "moment"),
}
BOUNDS: dict[str, list[Any]] = {"x": [-5, 20], "f": [-2.5, 7.5], "n": [0, 2**40], "p": [-8, 8]}
DECLARED = {
    "number": ("integer", "float", "decimal"),
    "text": ("text",),
    "moment": ("date", "timestamp"),
    "truth": ("boolean",),
    "unit": ("integer", "text", "decimal", "date", "timestamp", "boolean"),
}
USUAL = {"x": "integer", "n": "integer", "f": "float", "p": "decimal", "cat": "integer", "day": "integer"}
STEPS = {"m": [0, 9], "w": [0.0, 1.0]}


@dataclass(frozen=True)
class Storage:
    """A type of a store: what it is called there, and its values by role."""

    made: Any
    tame: Mapping[str, tuple[Any, ...]]
    nasty: tuple[Any, ...]
    roles: tuple[str, ...]
    natural: str | None
    exotic: bool = False
    """Whether many engines refuse the type at opening: it is drawn seldom, or most cases would be refused."""

    def __str__(self) -> str:
        return str(self.made)


def _arrow(kind: pa.DataType, roles: Sequence[str]) -> Storage:
    tame = {role: values.tame(kind, role) for role in ("number", "text", "moment", "truth")}
    exotic = str(kind).startswith(("time32", "time64", "duration", "binary", "decimal256", "halffloat"))
    return Storage(kind, tame, values.nasty(kind), tuple(roles), column_type(str(kind)), exotic)


def _arrow_roles(kind: pa.DataType) -> tuple[str, ...]:
    if pa.types.is_temporal(kind):
        return ("moment", "unit")
    if pa.types.is_boolean(kind):
        return ("truth", "unit", "number")
    if pa.types.is_decimal(kind):
        return ("number", "unit")
    if pa.types.is_dictionary(kind) or not pa.types.is_primitive(kind):
        return ("number", "moment", "truth", "text", "text", "text", "unit")
    return ("number", "unit", "truth") if pa.types.is_integer(kind) else ("number", "unit")


ARROW = tuple(_arrow(kind, _arrow_roles(kind)) for kind in values.EVERY)
TEXT = _arrow(pa.string(), _arrow_roles(pa.string()))
"""What a CSV file holds."""


@dataclass(frozen=True)
class Case:
    """Two neighbouring databases and what the owner declares of them."""

    mode: str
    relation: str
    storages: Mapping[str, Storage]
    declared: Mapping[str, str]
    without: Rows
    hostile: Rows
    """With the hostile neighbour: one unit more, or (replace) the same number of units, one of them other."""
    mine: Mapping[str, Sequence[Any]]
    """The hostile unit's rows of visits."""
    broken: bool = False
    """Whether the neighbour's rows make a file that is not well-formed."""

    def columns(self) -> dict[str, dict[str, Any]]:
        """The declaration of visits' columns."""
        columns: dict[str, dict[str, Any]] = {name: {"type": kind} for name, kind in self.declared.items()}
        for name, bounds in BOUNDS.items():
            whole = all(isinstance(bound, int) for bound in bounds)
            columns[name]["bounds"] = bounds if whole or self.declared[name] != "integer" else [-3, 8]
        domain: list[Any] = [1, 2, 3]
        columns["cat"]["domain"] = (
            [str(value) for value in domain] if self.declared["cat"] == "text" else domain
        )
        columns["city"]["domain"] = {"from": "cities.city"}
        return columns

    def declaration(self, sources: Mapping[str, Any], places: Mapping[str, Any]) -> dict[str, Any]:
        """The owner's file; `places` says of each table where it lies in its source."""
        units: dict[str, Any] = {
            "row": "row",
            "user": "user_id",
            "per": {"column": "user_id", "per": "day"},
        }
        private = {"unit": units[self.mode], "relation": self.relation}
        steps: dict[str, Any] = {name: {"type": self.declared[name]} for name in ("user_id", "day")}
        steps |= {"m": {"type": "integer", "bounds": STEPS["m"]}}
        steps |= {"w": {"type": "float", "bounds": STEPS["w"], "contribution": 2.5}}
        tables: dict[str, Any] = {
            "visits": {**private, "columns": self.columns(), **places["visits"]},
            "steps": {**private, "columns": steps, **places["steps"]},
            "cities": {"private": False, **places["cities"]},
        }
        return {"sources": dict(sources), "tables": tables, "budget": {"epsilon": 1e6, "delta": 0.01}}

    def secrets(self) -> tuple[str, ...]:
        """Spellings of the hostile unit's values that no message may hold; short ones occur by chance."""
        spellings = {values.MARK}
        for column in self.mine.values():
            for value in column:
                text = value.decode("latin-1") if isinstance(value, bytes) else str(value)
                if 7 <= len(text) <= 400:
                    spellings |= {text, repr(text)[1:-1]}
        return tuple(sorted(spellings))

    def __str__(self) -> str:
        kinds = ", ".join(f"{name}: {self.storages[name]} as {self.declared[name]}" for name in self.storages)
        mine = {name: [_short(value) for value in column] for name, column in self.mine.items()}
        return f"{self.relation}, unit {self.mode}\n  {kinds}\n  hostile rows: {mine}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else f"{text[:40]}... ({len(text)})"


def _told_apart(ids: Sequence[Any], storage: Storage) -> list[Any]:
    """Ids that are different values of the storage type: 0.0 and -0.0 are one person, and so is every NaN."""
    distinct: dict[Any, Any] = {}
    kind = storage.made
    for person in ids:
        plain: Any = repr(person) if kind == "object" else person
        if isinstance(kind, pa.DataType) and pa.types.is_floating(kind):
            plain = values.array([person], kind)[0].as_py()
            plain = "nan" if plain != plain else float(plain)
        elif isinstance(kind, pa.DataType) and pa.types.is_date64(kind):
            plain = person // (values.DAY * 1000)
        distinct.setdefault(plain, person)
    return list(distinct.values())


def _pick(rng: random.Random, storage: Storage, role: str, wild: float) -> Any:
    if rng.random() < 0.05:
        return None
    if storage.nasty and rng.random() < wild:
        return rng.choice(storage.nasty)
    return rng.choice(storage.tame[role])


def _visits(
    rng: random.Random, storages: Mapping[str, Storage], ids: Sequence[Any], wild: float
) -> dict[str, list[Any]]:
    """A row for each id."""
    rows: dict[str, list[Any]] = {}
    for name, storage in storages.items():
        role = ROLES[name]
        if name == "user_id":
            rows[name] = list(ids)
            continue
        rows[name] = [_pick(rng, storage, role, wild) for _ in ids]
        if name == "city" and storage.tame["text"] == TEXT.tame["text"]:
            rows[name] = [rng.choice(CITIES) if rng.random() > wild / 2 else value for value in rows[name]]
    return rows


def _steps(rng: random.Random, storages: Mapping[str, Storage], ids: Sequence[Any]) -> dict[str, list[Any]]:
    return {
        "user_id": list(ids),
        "day": [_pick(rng, storages["day"], "number", 0.2) for _ in ids],
        "m": [rng.choice([0, 3, 9, 99, -(2**63), 2**63 - 1, None]) for _ in ids],
        "w": [rng.choice([0.25, 1.0, float("nan"), float("inf"), -0.0, 5e-324, None]) for _ in ids],
    }


def _joined(one: Mapping[str, Sequence[Any]], two: Mapping[str, Sequence[Any]], place: int) -> dict[str, Any]:
    """The rows of one with those of the other put in at a place."""
    return {name: [*one[name][:place], *two[name], *one[name][place:]] for name in one}


def _choose(rng: random.Random, storages: Sequence[Storage], role: str) -> Storage:
    fitting = [storage for storage in storages for fit in storage.roles if fit == role]
    plain = [storage for storage in fitting if not storage.exotic]
    return rng.choice(fitting if rng.random() < 0.04 or not plain else plain)


def _declared(rng: random.Random, name: str, storage: Storage, mode: str) -> str:
    if name == "user_id" or (name == "day" and mode == "per"):
        # Floats and decimals cannot identify a unit; what is stored as one may, if it is declared otherwise.
        if storage.natural in ("decimal", "float", None):
            return rng.choice(["integer", "text", "integer", "text", "decimal"])
        return storage.natural if rng.random() < 0.8 else rng.choice(DECLARED["unit"])
    allowed = DECLARED[ROLES[name]]
    if storage.natural in allowed and rng.random() < 0.75:
        return storage.natural
    if name in USUAL and rng.random() < 0.6:
        return USUAL[name]
    return rng.choice(allowed)


def draw(
    rng: random.Random,
    storages: Sequence[Storage],
    texts: Sequence[Any] = (),
    mode: str | None = None,
    relation: str | None = None,
) -> Case:
    """A case; `texts` are put among the hostile unit's texts."""
    mode = mode or rng.choice(["user", "user", "user", "per", "row"])
    relation = relation or rng.choice(["add-remove", "add-remove", "replace"])
    chosen = {name: _choose(rng, storages, role) for name, role in ROLES.items()}
    declared = {name: _declared(rng, name, storage, mode) for name, storage in chosen.items()}
    unit = chosen["user_id"]
    ids = [*unit.tame["number"], *unit.tame["text"], *unit.tame["moment"]]
    if declared["user_id"] == unit.natural or unit.natural != "text":
        # Text that is declared as a number is told apart as one: 1 and 01 are one person.
        ids += rng.choices(unit.nasty, k=12)
    people = _told_apart(ids, unit)
    rng.shuffle(people)
    me, *others = people[:9]
    base = [person for person in others for _ in range(rng.choice([1, 1, 2, 3, 6]))]
    visits = _visits(rng, chosen, base, rng.choice([0.0, 0.0, 0.0, 0.15]))
    steps = _steps(rng, chosen, [rng.choice(others) for _ in range(6)] if others else [])

    def mine(wild: float) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
        many = 1 if mode == "row" else rng.choice([1, 2, 5, 9])
        rows = _visits(rng, chosen, [me] * many, wild)
        for name in ("t", "grp"):
            if texts and chosen[name].tame["text"] == TEXT.tame["text"] and rng.random() < 0.7:
                rows[name] = [rng.choice(texts) for _ in rows[name]]
        if mode == "per":
            rows["day"] = rows["day"][:1] * many
        return rows, _steps(rng, chosen, [me] if mode == "user" and rng.random() < 0.5 else [])

    place = rng.choice([0, len(base), rng.randint(0, len(base))])
    hostile, more = mine(0.8)
    with_me = {"visits": _joined(visits, hostile, place), "steps": _joined(steps, more, 0)}
    without: dict[str, Any] = {"visits": visits, "steps": steps}
    if relation == "replace":
        other, fewer = mine(0.4)
        without = {"visits": _joined(visits, other, place), "steps": _joined(steps, fewer, 0)}
    held = [value for side in (without, with_me) for name in ("t", "grp") for value in side["visits"][name]]
    broken = any(isinstance(value, bytes) and value in values.BROKEN_TEXTS for value in held)
    return Case(mode, relation, chosen, declared, without, with_me, hostile, broken)
