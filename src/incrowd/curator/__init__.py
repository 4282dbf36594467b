"""Price, reserve, execute, add noise, record, answer: the only room where data, noise and budget meet."""

from incrowd.curator.answer import Answer
from incrowd.curator.curator import Curator
from incrowd.curator.grants import Grant, Tree
from incrowd.curator.ledger import Balance, Ledger
from incrowd.curator.prices import Line, Price
from incrowd.curator.profile import Profile
from incrowd.curator.request import Request
from incrowd.curator.schedule import Step

__all__ = [
    "Answer",
    "Balance",
    "Curator",
    "Grant",
    "Ledger",
    "Line",
    "Price",
    "Profile",
    "Request",
    "Step",
    "Tree",
]
