"""Incrowd: a differential-privacy curator.

It stands between a database about people and everyone who wants to learn from it, answers SQL with just
enough exact noise that nobody in the data can be singled out, says how sure each answer is, and keeps a
durable account of the cost.
"""

from typing import TYPE_CHECKING

from incrowd.errors import (
    BackendError,
    BudgetExceeded,
    CatalogError,
    IncrowdError,
    InvalidInput,
    LedgerError,
    NotPermitted,
    QueryError,
    Refused,
)
from incrowd.lazy import lazy_names

if TYPE_CHECKING:
    from incrowd.curator import Answer, Balance, Curator, Grant, Price
    from incrowd.privacy import Guarantee
    from incrowd.version import __version__

__all__ = [
    "Answer",
    "BackendError",
    "Balance",
    "BudgetExceeded",
    "CatalogError",
    "Curator",
    "Grant",
    "Guarantee",
    "IncrowdError",
    "InvalidInput",
    "LedgerError",
    "NotPermitted",
    "Price",
    "QueryError",
    "Refused",
    "__version__",
]

if not TYPE_CHECKING:  # a checker must see a name that does not exist as an error
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Answer": "incrowd.curator",
            "Balance": "incrowd.curator",
            "Curator": "incrowd.curator",
            "Grant": "incrowd.curator",
            "Guarantee": "incrowd.privacy",
            "Price": "incrowd.curator",
            "__version__": "incrowd.version",
        },
        rooms=[
            "adversary",
            "backends",
            "catalog",
            "cli",
            "curator",
            "data",
            "explain",
            "mechanisms",
            "noise",
            "privacy",
            "query",
        ],
    )
