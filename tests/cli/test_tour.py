"""`incrowd demo`: every promise of the tour is kept by a real curator."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from incrowd.cli import tour
from tests.cli.conftest import Run


@pytest.mark.parametrize("width", [80, 120])
def test_the_tour_fits_a_terminal_and_leaves_nothing_behind(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    result = run("demo")
    assert (result.status, result.err) == (0, "")
    assert max(len(line) for line in result.out.splitlines()) <= width
    assert [line[:2] for line in result.out.splitlines() if line[:1].isdigit() and line[1:2] == "."][:9] == [
        f"{n}." for n in range(1, 10)
    ]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.statistical
def test_the_tour_shows_what_the_product_does(run: Run) -> None:
    steps = {step["title"]: step for step in run("demo", "--json").json["steps"]}
    count = steps["A count"]["answer"]["rows"][0]
    width = count["people_high"] - count["people_low"]
    # Ten half-widths of a 95% Laplace interval are exceeded with probability below 1e-12.
    assert abs(count["people"] - 48_842) <= 5 * width
    price = steps["A price, before asking"]["price"]["halfwidths"]
    assert width == pytest.approx(2 * next(iter(price.values())), abs=2)
    again = steps["The same question again"]["answer"]
    assert (
        again["recalled"]
        and again["rows"][0]["people"] == count["people"]
        and "NOT" not in steps["The same question again"]["said"]
    )
    assert "budget has" in steps["A question beyond the budget"]["refused"]
    assert len(steps["Groups that are not public"]["answer"]["rows"]) == 4
    assert [row["sex"] for row in steps["Quantiles"]["answer"]["rows"]] == ["Female", "Male"]
    (budget,) = steps["What is left"]["budgets"]
    assert 0 < budget["left_share"] < 1
    assert steps["What epsilon 1 means (delta aside)"]["at_most"] == pytest.approx(0.7310585786)


def test_the_tour_s_catalog_declares_only_what_is_public() -> None:
    assert "domain: [Female, Male]" in tour.CATALOG and "occupation: {{type: text}}" in tour.CATALOG
