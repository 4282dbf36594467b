"""Whose ledger it is: what its first entry holds of the owner's file, or of tables that have no file.

A file has an id, which is written into it when its ledger is founded. Tables in memory have names alone. So
their ledger is theirs as long as one of its private tables is still among them: others may come and go.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from incrowd.curator.ledger.chain import canonical

_TABLES = "tables "


def owner_of_tables(names: Iterable[str]) -> str:
    """What the ledger of tables in memory holds of them.

    >>> owner_of_tables(["visits", "people"])
    'tables ["people","visits"]'
    """
    return _TABLES + canonical(sorted(names))


def same_owner(recorded: str, own: str) -> bool:
    """Whether a ledger that holds `recorded` belongs to whoever is `own`.

    >>> same_owner('tables ["people"]', 'tables ["people","visits"]'), same_owner("one", "two")
    (True, False)
    """
    if own.startswith(_TABLES) and not recorded:
        return True  # founded before ledgers were tied to tables
    if own.startswith(_TABLES) and recorded.startswith(_TABLES):
        return not _names(own).isdisjoint(_names(recorded))
    return recorded == own


def stranger(ledger: str, recorded: str, own: str) -> str:
    """What is said to whoever is `own` and opens a ledger of somebody else.

    >>> stranger("a.ledger", "one", "two").partition(";")[0]
    "The ledger a.ledger belongs to an owner's file with id one, not to this one"
    """
    if recorded.startswith(_TABLES):
        whose = f"tables in memory ({', '.join(sorted(_names(recorded)))})"
    else:
        whose = f"an owner's file with id {recorded}" if recorded else "an owner's file without id"
    if own.startswith(_TABLES):
        return f"The ledger {ledger} belongs to {whose}, not to these tables; name their own under ledger=."
    return (
        f"The ledger {ledger} belongs to {whose}, not to this one; name this file's own ledger under "
        "ledger:, or, if it is the same file, give it back its id."
    )


def _names(owner: str) -> set[str]:
    try:
        names = json.loads(owner.removeprefix(_TABLES))
    except ValueError:
        return set()
    return {str(name) for name in names} if isinstance(names, list) else set()
