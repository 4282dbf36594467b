"""What is printed: every verdict in words, bounds rounded outwards, nothing that broke left out."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console, RenderableType

from incrowd.adversary.attacks.outcome import Attempt, Rate, Report
from incrowd.adversary.audit import auditor
from incrowd.adversary.commands.render import MOST_PLACES, audit_page, listed, report_page
from incrowd.adversary.commands.roster import ATTACKS

WIDE = Attempt("counts", Rate(50, 100), 0.5)
FOUND = auditor.Audit(
    epsilon=1.0,
    delta=0.0,
    bound=0.91239,
    estimate=1.0,
    tested=auditor.Tested("the output is at least 3", "x", (400, 150), 500),
    delta_interval=(0.0, 0.1),
    delta_tested=auditor.Tested("the output is at least 4", "x", (300, 100), 500),
    samples=1000,
    confidence=0.999,
    pair=([1], []),
)


def printed(page: RenderableType, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False)
    console.print(page)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def shown(report: Report) -> str:
    return printed(report_page(report))


def report(*attempts: Attempt, axis: str = "") -> Report:
    details = {"people": 1200, "example": {"both": ["a", "b"]}}
    return Report("trial", "A trial", "Nothing.", "Anything.", attempts, "Beware.", axis, details=details)


@pytest.mark.parametrize(
    ("attempt", "word"),
    [
        (WIDE, "no guarantee"),
        (replace(WIDE, allowed=0.7), "holds"),
        (replace(WIDE, success=Rate(100, 100), allowed=0.7), "BROKEN"),
        (replace(WIDE, success=Rate(100, 100), allowed=0.7, claimed=True), "breaks its claim"),
    ],
)
@pytest.mark.parametrize("axis", ["", "a long name of an axis"])
def test_every_verdict_fits_a_narrow_terminal(attempt: Attempt, word: str, axis: str) -> None:
    for other in (attempt, replace(attempt, guessing=0.25, x=2.0)):
        text = shown(report(replace(attempt, x=1.0), other, axis=axis))
        assert text.count(word) == 2
        assert max(map(len, text.splitlines())) <= 80


def test_a_report_says_what_is_known_what_counts_and_what_follows() -> None:
    text = shown(report(WIDE))
    said = ("A trial", "Nothing.", "Success: anything. Guessing is right in 50%.", "Beware.")
    assert all(part in text for part in (*said, "people: 1,200", "example, both: a, b"))


def test_a_long_axis_is_thinned_but_for_what_broke() -> None:
    good = [replace(WIDE, allowed=0.7, x=float(place)) for place in range(20)]
    good[7] = replace(good[7], success=Rate(100, 100))
    text = shown(report(*good, axis="k"))
    assert text.count("holds") == MOST_PLACES and text.count("BROKEN") == 1
    assert f"{MOST_PLACES + 1} of 20 shown" in text


def test_what_is_allowed_is_rounded_up_and_a_bound_down() -> None:
    assert "≤ 73.2%" in shown(report(replace(WIDE, allowed=0.7310586)))
    assert "at least  epsilon 0.9123, 91% of the claim" in printed(audit_page(FOUND))


def test_an_audit_says_that_consistent_is_no_proof_and_names_the_event() -> None:
    text = printed(audit_page(FOUND))
    assert text.startswith("consistent:") and "no proof" in text
    assert "the output is at least 3" in text and "in 80% of 500 runs on x, in 30% of those on x'" in text
    assert "between" not in text


def test_a_violation_is_said_first_and_a_search_tells_its_pair_and_delta_its_interval() -> None:
    text = printed(audit_page(replace(FOUND, bound=2.0, delta=0.01), searched=True))
    assert text.startswith("violates: epsilon is at least 2, above the claim.")
    assert "[1] and []" in text and "between 0 and 0.1 at the claimed epsilon" in text


def test_a_claim_of_nothing_has_no_share() -> None:
    text = printed(audit_page(replace(FOUND, epsilon=0.0)))
    assert text.startswith("violates") and "epsilon 0.9123, with 99.9% confidence" in text


def test_the_list_has_every_attack() -> None:
    text = printed(listed(ATTACKS))
    assert all(entry.name in text for entry in ATTACKS)
