"""A case of the corpus: a question that people ask, and what becomes of it. Read from YAML, nothing is run.

What the files hold is described at the head of `test_corpus.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
SCHEMAS = tuple(sorted(file.stem for file in (HERE / "schemas").glob("*.yaml")))
PARTS = ("times", "expressions", "clause", "relations", "people", "totals", "aggregates")
"""What may still be missing, as the field `pending` names it."""

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class CaseError(ValueError):
    """A case that does not keep to the format."""


@dataclass(frozen=True)
class Case:
    """One question; `state` and `refused` exclude each other."""

    file: str
    ask: str
    source: str
    state: str = ""
    refused: str = ""
    remedy: str = ""
    why: str = ""
    tables: str = "hospital"
    dialect: str = ""
    pending: str = ""
    page: str = ""
    columns: tuple[str, ...] = ()
    rows: int | None = None
    options: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        """What the test of this case is called."""
        return f"{self.file}: {' '.join(self.ask.split())[:70]}"


_TEXTS = {field.name for field in fields(Case) if field.type == "str"} - {"file"}
_KEYS = {field.name for field in fields(Case)} - {"file"}


def case_of(file: str, given: object) -> Case:
    """One entry of a file, checked.

    >>> case_of("public", {"ask": "SELECT COUNT(*) FROM visits", "source": "us", "state": "answered"}).tables
    'hospital'
    """

    def fault(said: str) -> CaseError:
        asked = given.get("ask") if isinstance(given, dict) else given
        return CaseError(f"{file}.yaml: {said}: {str(asked)[:100]!r}")

    if not isinstance(given, dict):
        raise fault("a case is a mapping")
    if unknown := given.keys() - _KEYS:
        raise fault(f"unknown keys {', '.join(sorted(map(str, unknown)))}")
    for key in given.keys() & _TEXTS:
        if not isinstance(given[key], str) or not given[key].strip():
            raise fault(f"{key} must be text")
    if not {"ask", "source"} <= given.keys():
        raise fault("ask and source are needed")
    refusal = {"refused", "remedy"} & given.keys()
    if ("state" in given) == bool(refusal):
        raise fault("say either state: answered, or refused and remedy")
    if refusal and len(refusal) != 2:
        raise fault("a refusal needs the sentence (refused) and what to write instead (remedy)")
    if given.get("state", "answered") != "answered":
        raise fault("the only state is answered")
    if given.get("tables", "hospital") not in SCHEMAS:
        raise fault(f"tables must be one of {', '.join(SCHEMAS)}")
    if given.get("pending", PARTS[0]) not in PARTS:
        raise fault(f"pending must be one of {', '.join(PARTS)}")
    values = {key: value.strip() if isinstance(value, str) else value for key, value in given.items()}
    if "columns" in values:
        values["columns"] = tuple(map(str, values["columns"]))
    return Case(file, **values)


def cases_of(file: Path) -> list[Case]:
    """The cases of one file."""
    entries = yaml.load(file.read_text(encoding="utf-8"), _Loader)
    if not isinstance(entries, list) or not entries:
        raise CaseError(f"{file.name}: expected a list of cases")
    return [case_of(file.stem, entry) for entry in entries]


def cases() -> list[Case]:
    """All cases of the corpus. A question on the same tables occurs once, whatever its spaces."""
    found = [case for file in sorted(HERE.glob("*.yaml")) for case in cases_of(file)]
    for twice in _doubled(found):
        raise CaseError(f"{twice.file}.yaml: asked before: {twice.ask[:100]!r}")
    return found


def _doubled(found: list[Case]) -> Iterator[Case]:
    seen = set()
    for case in found:
        identity = (case.tables, case.dialect, str(case.options), " ".join(case.ask.lower().split()))
        if identity in seen:
            yield case
        seen.add(identity)
