"""What a privacy guarantee is: events, composition, filters, group privacy, and what it means in odds.

This room knows no data. `Guarantee` prices a fixed plan; `Filter` holds a budget against an analyst who
decides as she goes. A float given anywhere here stands for its shortest decimal (0.1 is one tenth).
"""

from incrowd.privacy.amounts import UNITS, Real, read
from incrowd.privacy.amplification import shuffled, without_replacement
from incrowd.privacy.calibrate import calibrate
from incrowd.privacy.classical import Row, compare
from incrowd.privacy.dp_accounting import to_dp_accounting
from incrowd.privacy.events import Event
from incrowd.privacy.filters import (
    Capacity,
    Filter,
    Remaining,
    affordable,
    capacity,
    fits,
    refusal,
    remaining,
)
from incrowd.privacy.gdp import least_sigma
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
from incrowd.privacy.running_account import Account
from incrowd.privacy.tabulated import FiniteMechanism, event_range, name_and_shame

__all__ = [
    "UNITS",
    "Account",
    "Capacity",
    "Charge",
    "Event",
    "Filter",
    "FiniteMechanism",
    "Guarantee",
    "Real",
    "Remaining",
    "Row",
    "affordable",
    "approximate",
    "bounded_range",
    "calibrate",
    "capacity",
    "compare",
    "compose",
    "event_range",
    "fits",
    "gaussian",
    "laplace",
    "least_sigma",
    "name_and_shame",
    "poisson",
    "pure",
    "randomized_response",
    "read",
    "refusal",
    "remaining",
    "shuffled",
    "threshold",
    "to_dp_accounting",
    "without_replacement",
    "zcdp",
]
