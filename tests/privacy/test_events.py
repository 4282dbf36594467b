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
}


def test_released_events_keep_their_names_and_fields() -> None:
    # Ledgers hold these. A failure here means: give the changed event a new name instead.
    found = {name: tuple(f.name for f in fields(kind)) for name, kind in events.EVENTS.items()}
    assert {name: found[name] for name in RELEASED} == RELEASED


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
