"""What ties an owner's file to its ledger: a line that names it, and the id that its first entry holds too.

Nothing here reads or writes a file.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator
from pathlib import Path

from incrowd.catalog.catalog import Catalog
from incrowd.catalog.loading import parse
from incrowd.catalog.writing import NOTES, scalar
from incrowd.errors import CatalogError

_ID = re.compile(r"^id:.*$", re.MULTILINE)


def new_id() -> str:
    """An identity for an owner's file."""
    return secrets.token_hex(16)


def account_lines(ledger: str | None, identity: str | None) -> str:
    """The lines of an owner's file that name its ledger and tie the two together."""
    said = {"ledger": ledger, "id": identity}
    parts = [f"# {NOTES[name]}\n{name}: {scalar(value)}\n" for name, value in said.items() if value]
    return "\n".join(parts)


def tied(text: str, declared: Catalog, file: Path) -> str:
    """The text of an owner's file with a new id in it, in place of one that is there, and with a ledger."""
    identity = new_id()
    ledger = None if declared.ledger else f"{file.resolve().stem}.ledger"
    wanted = declared.model_copy(update={"id": identity, "ledger": declared.ledger or ledger})
    for candidate in _candidates(text, ledger, identity, declared.id):
        try:
            if parse(candidate, name=file.name).located(file) == wanted:
                return candidate
        except CatalogError:
            continue
    raise CatalogError(
        f"{file} cannot take a line with the id that ties it to its ledger; write its fields one below the "
        "other, and end it with the last of them."
    )


def _candidates(text: str, ledger: str | None, identity: str, old: str | None) -> Iterator[str]:
    """Ways to say it: a line for a line, lines at the end, or fields at the beginning of JSON."""
    if old is not None:
        yield _ID.sub(f"id: {scalar(identity)}", text)
        yield text.replace(json.dumps(old), json.dumps(identity))
        return
    yield f"{text.rstrip()}\n\n{account_lines(ledger, identity)}"
    fields = {"ledger": ledger, "id": identity} if ledger else {"id": identity}
    yield text.replace("{", "{" + json.dumps(fields)[1:-1] + ", ", 1)
