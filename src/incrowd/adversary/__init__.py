"""Attacks and audits: what a release gives away, and whether a mechanism keeps what it claims.

An attack is a function that returns a `Report`; `audit` takes any callable, command line or HTTP address and
returns an `Audit`. The adversary imports anything; nothing imports it, not even the command line, which finds
`incrowd attack` and `incrowd audit` by their entry points.
"""

from incrowd.adversary.audit import Audit, Batch, Command, Endpoint, Failure, Tested, audit, neighbours
from incrowd.adversary.averaging import averaging
from incrowd.adversary.bounds import most_hits, most_success
from incrowd.adversary.differencing import differencing
from incrowd.adversary.floating_point import floating_point
from incrowd.adversary.k_anonymity import k_anonymity
from incrowd.adversary.linkage import linkage
from incrowd.adversary.name_and_shame import name_and_shame
from incrowd.adversary.outcome import Attempt, Rate, Report
from incrowd.adversary.ratings import Ratings, generated_ratings, ratings_of
from incrowd.adversary.reconstruction import reconstruct, reconstruction
from incrowd.adversary.tracing import tracing

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
