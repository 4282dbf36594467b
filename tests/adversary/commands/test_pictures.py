"""Pictures of audits: what they hold, and files of every kind."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from incrowd.adversary.attacks.outcome import Attempt, Rate, Report
from incrowd.adversary.audit.suite import Line
from incrowd.adversary.commands.pictures import audit_chart, check, save, table_chart
from incrowd.errors import InvalidInput
from tests.adversary.commands.test_render import FOUND

LINES = [
    Line("mutant", "half", "wrong", replace(FOUND, bound=9.0), 0.1),
    Line("mechanism", "Laplace", "release", FOUND, 0.1),
]


def chart() -> object:
    return Report("t", "T", "k", "s", (Attempt("one", Rate(1, 2), 0.5),)).plot()


@pytest.mark.parametrize(
    ("name", "start"), [("a.svg", b"<svg"), ("a.png", b"\x89PNG"), ("a.html", b"<!DOCTYPE html>")]
)
def test_a_picture_is_saved_in_each_kind(tmp_path: Path, name: str, start: bytes) -> None:
    file = tmp_path / name
    check(file)
    save([chart(), chart()] if name == "a.svg" else [chart()], file)
    assert file.read_bytes().lstrip().startswith(start)


def test_a_page_needs_nothing_from_the_network(tmp_path: Path) -> None:
    save([chart()], tmp_path / "a.html")
    assert '<script src="http' not in (tmp_path / "a.html").read_text()


def test_a_picture_that_cannot_be_saved_is_refused_beforehand(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"must end in \.html, \.svg or \.png"):
        check(tmp_path / "a.gif")
    with pytest.raises(InvalidInput, match="There is no folder"):
        check(tmp_path / "nowhere" / "a.png")


def test_the_bar_passes_the_claim_exactly_when_it_is_violated() -> None:
    """The picture's intervals are those of the audit's bound."""
    for epsilon in (0.5, 0.7, 0.71, 0.9, 1.0):
        first, second = (Rate(hits, 500, 0.999) for hits in (400, 150))
        drawn = audit_chart(replace(FOUND, epsilon=epsilon)).to_dict()
        (values,) = drawn["datasets"].values()
        (row,) = [value for value in values if value["allowed"] is not None]
        assert row["data"] == "x" and row["low"] == first.low
        claims_less = first.low / second.high > 2.718281828459045**epsilon
        assert (row["low"] > row["allowed"]) is claims_less


def test_the_table_is_drawn_with_a_panel_for_each_kind() -> None:
    drawn = json.dumps(table_chart(LINES).to_dict())
    assert all(word in drawn for word in ("mutants", "mechanisms", '"half"', '"Laplace"'))
    assert '"closeness": 3.0' in drawn
    assert "mutants" in json.dumps(table_chart(LINES[:1]).to_dict())
