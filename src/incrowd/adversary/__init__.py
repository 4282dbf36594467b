"""Attacks and audits: what a release gives away, and whether a mechanism keeps what it claims.

An attack is a function that returns a `Report`; `audit` takes any callable, command line or HTTP address and
returns an `Audit`. The adversary imports anything; nothing imports it, not even the command line, which finds
`incrowd attack` and `incrowd audit` by their entry points.
"""

from typing import TYPE_CHECKING

# Imported eagerly: the package of the same name would shadow a lazy one.
from incrowd.adversary.audit import audit
from incrowd.lazy import lazy_names

if TYPE_CHECKING:
    from incrowd.adversary.attacks.averaging import averaging
    from incrowd.adversary.attacks.bounds import most_hits, most_success
    from incrowd.adversary.attacks.differencing import differencing
    from incrowd.adversary.attacks.floating_point import floating_point
    from incrowd.adversary.attacks.k_anonymity import k_anonymity
    from incrowd.adversary.attacks.linkage import linkage
    from incrowd.adversary.attacks.name_and_shame import name_and_shame
    from incrowd.adversary.attacks.outcome import Attempt, Rate, Report
    from incrowd.adversary.attacks.reconstruction import reconstruct, reconstruction
    from incrowd.adversary.attacks.tracing import tracing
    from incrowd.adversary.audit import Audit, Batch, Command, Endpoint, Failure, Tested, neighbours
    from incrowd.adversary.data.ratings import Ratings, generated_ratings, ratings_of

__all__ = [
    "Attempt",
    "Audit",
    "Batch",
    "Command",
    "Endpoint",
    "Failure",
    "Rate",
    "Ratings",
    "Report",
    "Tested",
    "audit",
    "averaging",
    "differencing",
    "floating_point",
    "generated_ratings",
    "k_anonymity",
    "linkage",
    "most_hits",
    "most_success",
    "name_and_shame",
    "neighbours",
    "ratings_of",
    "reconstruct",
    "reconstruction",
    "tracing",
]

if not TYPE_CHECKING:  # a checker must see a name that does not exist as an error
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Attempt": "incrowd.adversary.attacks.outcome",
            "Audit": "incrowd.adversary.audit",
            "Batch": "incrowd.adversary.audit",
            "Command": "incrowd.adversary.audit",
            "Endpoint": "incrowd.adversary.audit",
            "Failure": "incrowd.adversary.audit",
            "Rate": "incrowd.adversary.attacks.outcome",
            "Ratings": "incrowd.adversary.data.ratings",
            "Report": "incrowd.adversary.attacks.outcome",
            "Tested": "incrowd.adversary.audit",
            "averaging": "incrowd.adversary.attacks.averaging",
            "differencing": "incrowd.adversary.attacks.differencing",
            "floating_point": "incrowd.adversary.attacks.floating_point",
            "generated_ratings": "incrowd.adversary.data.ratings",
            "k_anonymity": "incrowd.adversary.attacks.k_anonymity",
            "linkage": "incrowd.adversary.attacks.linkage",
            "most_hits": "incrowd.adversary.attacks.bounds",
            "most_success": "incrowd.adversary.attacks.bounds",
            "name_and_shame": "incrowd.adversary.attacks.name_and_shame",
            "neighbours": "incrowd.adversary.audit",
            "ratings_of": "incrowd.adversary.data.ratings",
            "reconstruct": "incrowd.adversary.attacks.reconstruction",
            "reconstruction": "incrowd.adversary.attacks.reconstruction",
            "tracing": "incrowd.adversary.attacks.tracing",
        },
    )
