"""Whatever a caller passes to a curator, what comes out is an answer or an IncrowdError in one sentence."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from incrowd import Curator, IncrowdError
from tests.test_odd_arguments import ODD

TABLE = pa.table({"id": range(100), "x": [float(place % 9) for place in range(100)], "a": ["u"] * 100})
SUM = "SELECT SUM(x) AS s FROM t"
NUMBERS = [Decimal("0.5"), np.float64(0.5), np.float32(0.5), np.float16(0.5), Fraction(1, 2)]


def made(**changes: Any) -> Curator:
    settings = {"unit": "id", "bounds": {"x": (0, 2)}, "budget": (1e6, 1e-3), "t": TABLE, **changes}
    return Curator.from_tables(**settings)


def refused_at_most(act: Callable[[], object]) -> None:
    try:
        act()
    except IncrowdError as error:
        assert str(error).strip() and "\n" not in str(error)


@pytest.fixture(scope="module")
def curator() -> Curator:
    return made()


@pytest.mark.parametrize(
    "name",
    ["sql", "epsilon", "delta", "within", "confidence", "contribution", "groups", "rescale", "analyst"],
)
def test_ask_and_price(curator: Curator, name: str) -> None:
    for odd in ODD:
        options = {"sql": SUM, "epsilon": 0.1, "contribution": 1, name: odd}
        refused_at_most(lambda options=options: curator.price(**options))  # type: ignore[misc]


@pytest.mark.parametrize("name", ["epsilon", "delta", "confidence"])
def test_ask_with_groups_that_are_bought(curator: Curator, name: str) -> None:
    for odd in ODD:
        options = {"sql": "SELECT a, COUNT(*) AS n FROM t GROUP BY a", "epsilon": 0.1, name: odd}
        refused_at_most(lambda options=options: curator.ask(**options))  # type: ignore[misc]


@pytest.mark.parametrize("name", ["epsilon", "table", "columns", "delta", "progress"])
def test_tuning(curator: Curator, name: str) -> None:
    for odd in ODD:
        numbers = int | float | Decimal | Fraction | np.generic | np.ndarray
        if odd is not None and not (name == "epsilon" and isinstance(odd, numbers)):
            refused_at_most(lambda odd=odd: curator.tune(**{"epsilon": 1e-9, name: odd}))  # type: ignore[misc]


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: type(odd).__name__)
def test_grants_and_budgets(curator: Curator, odd: Any) -> None:
    usual = {"epsilon": 0.1, "delta": 0.0, "purpose": "x"}
    for name in (*usual, "schedule", "about", "analyst", "confidence"):
        refused_at_most(lambda name=name: curator.grant(**{**usual, name: odd}))  # type: ignore[misc]
    refused_at_most(lambda: curator.grant(**usual, schedule={"sums": odd}))
    refused_at_most(lambda: curator.grant(**usual, schedule=[odd]))
    refused_at_most(lambda: curator.budget(odd))
    grant = curator.grant(epsilon=1.0, purpose="odd", schedule={"sums": 3, "tree": 3, "select": 3})
    for name in ("sql", "contribution", "groups"):
        refused_at_most(lambda name=name: grant.sums(**{"sql": SUM, "contribution": 1, name: odd}))  # type: ignore[misc]
    refused_at_most(lambda: grant.tree("SELECT x FROM t", branching=odd, contribution=1))
    refused_at_most(lambda: grant.select(odd))
    refused_at_most(lambda: grant.histogram(odd))


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: type(odd).__name__)
def test_opening(odd: Any) -> None:
    refused_at_most(lambda: Curator.open(odd))
    for name in (
        "tables", "unit", "bounds", "domains", "budget", "public", "relation", "contribution", "not_null",
        "analysts", "t", "new_ledger",
    ):  # fmt: skip
        refused_at_most(lambda name=name: made(**{name: odd}))  # type: ignore[misc]
    if not isinstance(odd, str):
        refused_at_most(lambda: made(ledger=odd))
    for name, value in (
        ("bounds", {"x": (0, odd)}),
        ("bounds", {"x": odd}),
        ("domains", {"a": [odd]}),
        ("domains", {"a": odd}),
        ("budget", (odd, 0.0)),
        ("budget", (1.0, odd)),
        ("contribution", {"x": odd}),
        ("contribution", {"t": odd}),
        ("analysts", {"ana": {"epsilon": odd}}),
        ("analysts", {"ana": odd}),
        ("public", [odd]),
        ("not_null", [odd]),
        ("unit", {"t": odd}),
        ("unit", ("id", odd)),
    ):
        refused_at_most(lambda name=name, value=value: made(**{name: value}))  # type: ignore[misc]


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: type(odd).__name__)
def test_answers(curator: Curator, odd: Any) -> None:
    answer = curator.ask(SUM, epsilon=0.1, contribution=1)
    for read in (answer.to_pandas, answer.to_polars, answer.to_arrow, answer.numbers, answer.intervals):
        refused_at_most(lambda read=read: read(odd))  # type: ignore[misc]


@pytest.mark.parametrize("half", NUMBERS, ids=lambda half: type(half).__name__)
def test_a_number_of_any_library_is_that_number(half: Any) -> None:
    curator = made(budget=(half, 0.0), bounds={"x": (0, half)})
    assert curator.catalog.budget.epsilon == 0.5
    price = curator.price(SUM, epsilon=half, contribution=np.int64(1), confidence=half)
    assert price == curator.price(SUM, epsilon=0.5, contribution=1, confidence=0.5)
    assert curator.ask(SUM, epsilon=half, contribution=1).to_arrow(intervals=half).num_columns == 3


def test_a_callback_that_is_none_is_refused_before_anything_is_paid(curator: Curator) -> None:
    before = curator.budget()
    with pytest.raises(IncrowdError, match="progress must be a function"):
        curator.ask(SUM, epsilon=0.125, contribution=1, progress="loud")  # type: ignore[arg-type]
    assert curator.budget() == before


def test_files_that_are_not_what_they_seem_are_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "bad.csv.gz").write_bytes(b"\x1f\x8b\x08 no gzip at all")
    (tmp_path / "cut.parquet").write_bytes(b"PAR1 and then nothing")
    (tmp_path / "empty.parquet").write_bytes(b"")
    (tmp_path / "other.duckdb").write_bytes(b"x" * 10_000)
    (tmp_path / "binary.csv").write_bytes(bytes(range(256)))
    for source in (
        "csv: folder.csv", "csv: bad.csv.gz", "parquet: cut.parquet", "parquet: empty.parquet",
        "duckdb: other.duckdb", "csv: binary.csv", 'csv: "a\\0b.csv"', 'csv: "nowhere*.csv"',
        "parquet: folder.csv", "duckdb: folder.csv",
    ):  # fmt: skip
        file = tmp_path / "curator.yaml"
        file.write_text(
            f"sources: {{s: {{{source}}}}}\ntables: {{t: {{unit: row, columns: {{x: {{type: integer}}}}}}}}\n"
            "budget: {epsilon: 1}\n"
        )
        with pytest.raises(IncrowdError) as told:
            Curator.open(file, new_ledger=True)
        assert "\n" not in str(told.value)
