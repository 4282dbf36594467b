"""Our events as those of Google's dp-accounting (an extra: `pip install incrowd[bench]`).

Every event is written as one with the same pair, or with one that dominates it. Its `DiscreteLaplaceDpEvent`
of sensitivity 1 is the pair of randomized response, so pure releases are written as that. (Its own
`RandomizedResponseDpEvent` loses the count when composed, and is not used.)
"""

from __future__ import annotations

import importlib
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from incrowd.errors import InvalidInput
from incrowd.privacy import events
from incrowd.privacy.amounts import float_up

if TYPE_CHECKING:
    from incrowd.privacy.guarantee import Guarantee


def to_dp_accounting(guarantee: Guarantee) -> Any:
    """A `dp_accounting.dp_event.DpEvent` for the whole plan."""
    try:
        library = importlib.import_module("dp_accounting.dp_event")
    except ImportError as error:
        raise InvalidInput("dp-accounting is not installed: run pip install dp-accounting.") from error
    parts = [
        library.SelfComposedDpEvent(_translate(library, event), count) for event, count in guarantee.events
    ]
    return library.ComposedDpEvent(parts) if parts else library.NoOpDpEvent()


def _translate(library: Any, event: events.Event) -> Any:
    match event:
        case events.Gaussian():
            return library.GaussianDpEvent(_inverse(event.mu))
        case events.Laplace():
            return library.LaplaceDpEvent(_inverse(event.epsilon))
        case events.DiscreteLaplace():
            return library.DiscreteLaplaceDpEvent(float_up(event.epsilon / event.steps), event.steps)
        case events.Pure() | events.RandomizedResponse() | events.BoundedRange():
            return library.DiscreteLaplaceDpEvent(float_up(event.epsilon), 1)
        case events.ZeroConcentrated():
            return library.ZCDpEvent(float_up(event.rho))
        case events.PoissonSubsampled():
            return library.PoissonSampledDpEvent(float_up(event.rate), _translate(library, event.event))
        case events.PoissonGroup() | events.PoissonUnits():
            raise InvalidInput("dp-accounting has no event for groups of people in a Poisson sample.")
        case events.WithoutReplacement():
            raise InvalidInput("dp-accounting has no event for samples without replacement of this relation.")
        case events.Approximate() | events.Threshold():
            raise InvalidInput(
                f"dp-accounting has no event for a release with a delta of its own ({event.name}): "
                "leave it out and add its delta by hand."
            )


def _inverse(value: Fraction) -> float:
    """1 / value, rounded down: less noise is the safe side."""
    return math.nextafter(float(1 / value), 0.0)
