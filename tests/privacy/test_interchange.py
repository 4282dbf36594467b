from __future__ import annotations

import dataclasses
import json
from fractions import Fraction
from pathlib import Path

import pytest

from incrowd.errors import InvalidInput
from incrowd.privacy import events, interchange

PAGE = (Path(__file__).parents[2] / "docs" / "events.md").read_text()


@pytest.mark.parametrize("name", sorted(events.EVENTS))
def test_every_event_is_documented_with_its_fields(name: str) -> None:
    row = next((line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |")), None)
    assert row is not None, f"docs/events.md does not say what {name} means"
    fields = row.split("|")[2]
    assert all(f"`{field.name}`" in fields for field in dataclasses.fields(events.EVENTS[name]))


def test_the_documented_example_is_read() -> None:
    example = PAGE.partition("```json")[2].partition("```")[0]
    plan = interchange.loads(example)
    assert plan == [
        (events.DiscreteLaplace(Fraction(1, 10), 1), 12),
        (events.Gaussian(Fraction(1, 2)), 1),
    ]
    assert json.loads(example)["version"] == interchange.VERSION


@pytest.mark.parametrize(
    ("value", "plain"),
    [(Fraction(1, 10), 0.1), (Fraction(3), 3), (Fraction(1, 3), "1/3"), (Fraction(2**60), 2**60), (7, 7)],
)
def test_numbers_are_exact_in_json(value: Fraction | int, plain: object) -> None:
    written = json.loads(json.dumps(interchange.number(value)))
    assert written == plain or Fraction(str(written)) == value
    tiny = Fraction(1, 10**400)
    assert Fraction(interchange.number(tiny)) == tiny
    assert Fraction(interchange.number(10**400 + Fraction(1, 3))) == 10**400 + Fraction(1, 3)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (Fraction(3, 2), "1.5"),
        (Fraction(1000), "1000"),
        (Fraction(2**53 - 1), "9007199254740991"),
        (Fraction(2**53), "9007199254740992.0"),
        (Fraction(2, 3), '"2/3"'),
        (Fraction(10**400), f'"{10**400}"'),
        (12, "12"),
    ],
)
def test_how_numbers_are_written(value: Fraction | int, written: str) -> None:
    assert json.dumps(interchange.number(value)) == written


def test_fractions_are_read_and_nothing_else_in_quotes_is() -> None:
    assert interchange.from_plain({"kind": "pure", "epsilon": "2/3"}) == events.Pure(Fraction(2, 3))
    assert interchange.from_plain({"kind": "pure", "epsilon": "7", "count": 2}) == events.Pure(Fraction(7))
    for text in ("1e9", "-1/3", "1/0", "1/00", " 1", "", "1/3/4", "9" * 4001):
        with pytest.raises(InvalidInput, match="epsilon of the event 'pure' is not a number"):
            interchange.from_plain({"kind": "pure", "epsilon": text})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", "schema"),
        ('{"schema": "other", "version": 1, "events": []}', "schema"),
        ('{"schema": "incrowd.guarantee", "version": 1, "events": 3}', "schema"),
        ('{"schema": "incrowd.guarantee", "version": 1}', "schema"),
        ('{"schema": "incrowd.guarantee", "version": 2, "events": []}', "version 2"),
        ('{"schema": "incrowd.guarantee", "version": 1, "events": [3]}', "known kind"),
        ('{"schema": "incrowd.guarantee", "version": 1, "events": [{"kind": 3}]}', "known kind"),
        ('{"schema": "incrowd.guarantee", "version": 1, "events": [{"kind": "no"}]}', "'no'"),
        ('{"schema": "incrowd.guarantee", "version": 1, "events": [{"kind": "pure"}]}', "fields epsilon"),
    ],
)
def test_what_is_no_plan_is_refused_by_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        interchange.loads(text)


def test_an_event_without_a_count_was_run_once_and_order_is_kept() -> None:
    plan = {events.Pure(Fraction(1, 3)): 2, events.Threshold(Fraction(1, 10)): 1}
    assert interchange.loads(interchange.dumps(plan)) == list(plan.items())
    text = '{"schema": "incrowd.guarantee", "version": 1, "events": [{"kind": "pure", "epsilon": 2}]}'
    assert interchange.loads(text) == [(events.Pure(Fraction(2)), 1)]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (Fraction(1, 3), "0.333334"),
        (Fraction(1234567), "1.23457e+06"),
        (Fraction(1, 10**400), "1e-400"),
        (Fraction(10**400 + 1), "1.00001e+400"),
        (Fraction(0), "0"),
    ],
)
def test_figures_round_up(value: Fraction, shown: str) -> None:
    assert interchange.figure(value) == shown


def test_nested_events_are_described_in_words() -> None:
    event = events.PoissonSubsampled(events.Gaussian(Fraction(1)), Fraction(1, 100))
    assert interchange.describe(event) == "poisson-subsampled(gaussian(mu=1), rate=0.01)"
    assert interchange.from_plain(interchange.to_plain(event)) == event
