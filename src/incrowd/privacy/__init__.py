"""What a privacy guarantee is: events, composition, filters, group privacy, and what it means in odds.

This room knows no data. `Guarantee` prices a fixed plan; `Filter` holds a budget against an analyst who
decides as she goes.
"""

from incrowd.privacy.amounts import UNITS
from incrowd.privacy.events import Event
from incrowd.privacy.filters import Capacity, Filter, Remaining, capacity, fits
from incrowd.privacy.guarantee import (
    Charge,
    Guarantee,
    approximate,
    bounded_range,
    compose,
    gaussian,
    laplace,
    poisson,
    pure,
    randomized_response,
    threshold,
    zcdp,
)

__all__ = [
    "UNITS",
    "Capacity",
    "Charge",
    "Event",
    "Filter",
    "Guarantee",
    "Remaining",
    "approximate",
    "bounded_range",
    "capacity",
    "compose",
    "fits",
    "gaussian",
    "laplace",
    "poisson",
    "pure",
    "randomized_response",
    "threshold",
    "zcdp",
]
