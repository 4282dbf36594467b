"""A catalog written out and read again declares the same."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from incrowd.catalog import check, dump, parse, reading, writing

from .test_loading import GOOD

NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=1).filter(
    lambda text: text == text.strip() and text != "FILL"
)
TEXT = st.text(st.characters(codec="utf-8")).filter(lambda text: text != "FILL")


def test_the_full_file_survives_writing() -> None:
    catalog = parse(GOOD)
    text = dump(catalog)
    assert parse(text) == catalog
    assert dump(parse(text)) == text
    for section in ("sources", "tables", "budget", "analysts"):
        before = text[: text.index(f"\n{section}:")].splitlines()[-1] if section != "sources" else text
        assert before.startswith("# "), f"{section} is explained"


def test_only_what_differs_from_the_defaults_is_written() -> None:
    text = dump(parse("sources: {s: {csv: a.csv}}\nbudget: {epsilon: 1}\ntables: {t: {private: false}}"))
    assert "relation" not in text and "sharing" not in text and "null" not in text


@given(
    st.one_of(
        TEXT,
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.booleans(),
        st.dates(),
        st.datetimes(),
        st.none(),
    )
)
def test_every_scalar_survives_writing(value: Any) -> None:
    written = writing.scalar(value)
    back, _ = reading.read(f"v: {written}\nw: [{written}]", "text")
    assert back == {"v": value, "w": [value]} and type(back["v"]) is type(value)


@given(NAMES, NAMES)
def test_every_name_survives_writing(table: str, column: str) -> None:
    table = table.replace(".", "_")
    catalog = check(
        {
            "sources": {"s": {"csv": ["a.csv", "b c.csv"]}},
            "tables": {table: {"unit": {"column": column}, "columns": {column: {"type": "text"}}}},
            "budget": {"epsilon": 1},
            "analysts": {column: {"epsilon": 0.5}},
        }
    )
    assert parse(dump(catalog)) == catalog


BOUNDS: dict[str, st.SearchStrategy[Any]] = {
    "integer": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(-1e300, 1e300),
    "decimal": st.decimals(allow_nan=False, allow_infinity=False),
    "date": st.dates(),
    "timestamp": st.datetimes(),
}


@given(st.data())
def test_every_bound_and_domain_survives_writing(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(sorted(BOUNDS)))
    values = data.draw(st.lists(BOUNDS[kind], min_size=2, max_size=5, unique=True))
    column: dict[str, Any] = {"type": kind, "bounds": [min(values), max(values)], "domain": values}
    catalog = check(
        {
            "sources": {"s": {"csv": "a.csv"}},
            "tables": {"t": {"unit": "row", "columns": {"c": column}}},
            "budget": {"epsilon": 1},
        }
    )
    declared = parse(dump(catalog)).tables["t"].columns["c"]
    assert declared == catalog.tables["t"].columns["c"]
    assert declared.limits == (min(values), max(values))


@given(st.text(max_size=300))
def test_no_text_makes_the_reader_raise_anything_but_its_own_error(text: str) -> None:
    from incrowd.errors import CatalogError

    try:
        parse(text)
    except CatalogError as error:
        assert str(error).endswith(".")


def test_types_of_values_are_kept() -> None:
    catalog = parse(dump(parse(GOOD)))
    columns = catalog.tables["people"].columns
    kinds = {"age": int, "day": date, "income": Decimal, "seen": datetime}
    for name, kind in kinds.items():
        bounds = columns[name].bounds
        assert bounds is not None and all(type(end) is kind for end in bounds)
    assert math.isclose(catalog.budget.delta, 1e-6, rel_tol=0)
