"""Incrowd: a differential-privacy curator.

It stands between a database about people and everyone who wants to learn from it, answers SQL with just
enough exact noise that nobody in the data can be singled out, says how sure each answer is, and keeps a
durable account of the cost.
"""

from importlib.metadata import version

from incrowd.curator import Answer, Curator
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

__version__ = version("incrowd")

__all__ = [
    "Answer",
    "BackendError",
    "BudgetExceeded",
    "CatalogError",
    "Curator",
    "IncrowdError",
    "InvalidInput",
    "LedgerError",
    "NotPermitted",
    "QueryError",
    "Refused",
    "__version__",
]
