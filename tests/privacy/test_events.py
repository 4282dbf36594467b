from __future__ import annotations

from dataclasses import fields
from fractions import Fraction

import pytest

from incrowd.errors import InvalidInput
from incrowd.privacy import events

RELEASED = {
    "pure": ("epsilon",),
    "approximate": ("epsilon", "delta"),
    "zero-concentrated": ("rho",),
    "gaussian": ("mu",),
    "laplace": ("epsilon",),
    "discrete-laplace": ("epsilon", "steps"),
    "randomized-response": ("epsilon", "categories"),
    "bounded-range": ("epsilon",),
    "threshold": ("delta",),
    "poisson-subsampled": ("event", "rate"),
    "poisson-group": ("event", "rate"),
    "poisson-units": ("event", "rate", "units"),
    "without-replacement": ("event", "rate", "records"),
}
VALUES = {"event": events.Pure(Fraction(1)), "steps": 3, "categories": 3, "units": 3, "records": 3}


def test_released_events_keep_their_names_and_fields() -> None:
    # Ledgers hold these. A failure here means: give the changed event a new name instead.
    field_names = {name: tuple(f.name for f in fields(kind)) for name, kind in events.EVENTS.items()}
    assert {name: field_names[name] for name in RELEASED} == RELEASED


@pytest.mark.parametrize("name", RELEASED)
def test_no_event_changes_and_equal_ones_are_one(name: str) -> None:
    values = {field: VALUES.get(field, Fraction(1, 2)) for field in RELEASED[name]}
    event = events.EVENTS[name](**values)
    assert {event, events.EVENTS[name](**values)} == {event}
    for field, value in values.items():
        assert getattr(event, field) == value
        with pytest.raises(AttributeError):
            setattr(event, field, value)
        if field != "event":
            with pytest.raises(InvalidInput, match=field):
                events.EVENTS[name](**{**values, field: -1})
        if field in ("delta", "rate"):
            events.EVENTS[name](**{**values, field: 1})
            with pytest.raises(InvalidInput, match=field):
                events.EVENTS[name](**{**values, field: 1.5})


def test_the_least_that_counts_is_one_and_categories_are_two() -> None:
    base = events.Pure(Fraction(1))
    assert events.DiscreteLaplace(Fraction(1), 1).steps == 1
    assert events.RandomizedResponse(Fraction(1)).categories == 2
    assert events.PoissonUnits(base, Fraction(1, 2), 1).units == 1
    assert events.WithoutReplacement(base, Fraction(1, 2)).records == 1
    for kind in (events.PoissonUnits, events.WithoutReplacement):
        with pytest.raises(InvalidInput, match="whole number, 1 or more"):
            kind(base, Fraction(1, 2), 0)
        with pytest.raises(InvalidInput, match="Poisson sampling"):
            kind(events.BoundedRange(Fraction(1)), Fraction(1, 2), 1)
    with pytest.raises(InvalidInput, match="Poisson sampling"):
        events.PoissonGroup(events.BoundedRange(Fraction(1)), Fraction(1, 2))


def test_events_are_values() -> None:
    assert events.Pure(Fraction(1, 10)) == events.Pure(0.1)  # type: ignore[arg-type]
    assert len({events.Gaussian(Fraction(1)), events.Gaussian(Fraction(1))}) == 1
    with pytest.raises(AttributeError):
        events.Pure(Fraction(1)).epsilon = Fraction(2)  # type: ignore[misc]


@pytest.mark.parametrize("base", [events.ZeroConcentrated(Fraction(1)), events.Threshold(Fraction(1, 2)), 3])
def test_what_sampling_cannot_precede_is_refused(base: object) -> None:
    with pytest.raises(InvalidInput, match="Poisson sampling"):
        events.PoissonSubsampled(base, Fraction(1, 2))  # type: ignore[arg-type]


def test_steps_and_categories_are_checked() -> None:
    with pytest.raises(InvalidInput, match="steps"):
        events.DiscreteLaplace(Fraction(1), 0)
    with pytest.raises(InvalidInput, match="categories"):
        events.RandomizedResponse(Fraction(1), 1)
