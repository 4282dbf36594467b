"""Attacks and audits: what a release gives away, and whether a mechanism keeps what it claims.

An attack is a function that returns a `Report`; `audit` takes any callable, command line or HTTP address and
returns an `Audit`. The adversary imports anything; nothing imports it, not even the command line, which finds
`incrowd attack` and `incrowd audit` by their entry points.
"""

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
from incrowd.adversary.audit import Audit, Batch, Command, Endpoint, Failure, Tested, audit, neighbours
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
