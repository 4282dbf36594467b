from __future__ import annotations

import dataclasses
import json
from fractions import Fraction
from pathlib import Path

import pytest

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
    found = interchange.loads(example)
    assert found == [
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


def test_nested_events_are_described_in_words() -> None:
    event = events.PoissonSubsampled(events.Gaussian(Fraction(1)), Fraction(1, 100))
    assert interchange.describe(event) == "poisson-subsampled(gaussian(mu=1), rate=0.01)"
    assert interchange.from_plain(interchange.to_plain(event)) == event
