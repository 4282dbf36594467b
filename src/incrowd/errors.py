"""Every error that Incrowd raises on purpose, in one tree.

    IncrowdError
    ├── InvalidInput (also a ValueError)   wrong input; nothing was spent; exit status 2
    │   ├── CatalogError                   the owner's file, with the path to the fault
    │   └── QueryError                     a question that cannot be answered as written
    ├── Refused                            right input, but not allowed; exit status 1
    │   ├── BudgetExceeded                 carries what was asked and what is left
    │   └── NotPermitted                   the analyst may not see this
    ├── LedgerError                        the account of spending was altered or cannot be reached
    └── BackendError                       the database failed; what was reserved stays spent

A message is one sentence in the user's words: the thing at fault, what was expected, how to mend it.
It never holds a value from private data.
"""

from __future__ import annotations

import re

_BREAKS = re.compile(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+ *")
_ENDLESS = re.compile(r"\S{401,}")


class IncrowdError(Exception):
    """Anything that Incrowd raises on purpose.

    `arguments` are the parameters that the message names as `name=`; the command line writes them as --name.
    """

    exit_status = 2

    def __init__(self, message: str = "", *, arguments: tuple[str, ...] = ()) -> None:
        super().__init__(_short(message))
        self.arguments = arguments


def _short(message: str) -> str:
    """A message on one line, in which no name or path of the user's has more than 400 letters.

    >>> _short("no column a\\n b"), len(_short("no column " + "a" * 100_000))
    ('no column a b', 313)
    """
    line = _BREAKS.sub(" ", str(message))
    return _ENDLESS.sub(lambda word: f"{word[0][:200]}...{word[0][-100:]}", line)


class InvalidInput(IncrowdError, ValueError):  # noqa: N818 (reads as a sentence where it is raised)
    """The input is wrong; nothing was released or spent."""


class CatalogError(InvalidInput):
    """The owner's file says something that cannot be; the message holds the path to the fault."""


class QueryError(InvalidInput):
    """The question cannot be answered as it is written."""


class Refused(IncrowdError):  # noqa: N818
    """The input is right, but policy does not allow it; nothing was spent."""

    exit_status = 1


class BudgetExceeded(Refused):
    """The price does not fit what is left.

    `asked` and `left` say how much of the tightest cap that was and is, as the words a person reads.
    """

    def __init__(self, message: str, *, asked: str = "", left: str = "") -> None:
        super().__init__(message)
        self.asked = asked
        self.left = left


class NotPermitted(Refused):
    """The analyst is unknown or may not ask this."""


class LedgerError(IncrowdError):
    """The ledger was altered, or cannot be read or written."""


class BackendError(IncrowdError):
    """The database behind the curator failed; what was reserved stays spent."""
