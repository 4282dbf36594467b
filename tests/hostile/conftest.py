"""What the hostile neighbour's tests share: their tallies, shown as a table at the end of a large run."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, fields
from typing import Any

import pytest

from tests.hostile.neighbour import HEADING, Tally


@pytest.fixture
def counted(record_property: Callable[[str, object], None]) -> Callable[[Tally], None]:
    """Keeps a tally for the table, and fails if something was found."""

    def keep(tally: Tally) -> None:
        record_property("hostile", {**asdict(tally), "broken": len(tally.broken)})
        shown = "\n\n".join(tally.broken[:5])
        assert not tally.broken, (
            f"{len(tally.broken)} of {tally.tried} questions tell more than numbers:\n{shown}"
        )

    return keep


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The table: what was tried, accepted, refused and broken, by engine."""
    if "INCROWD_HOSTILE" not in os.environ:
        return
    sums: dict[str, Tally] = {}
    for report in (entry for kind in ("passed", "failed") for entry in terminalreporter.stats.get(kind, ())):
        for name, counts in getattr(report, "user_properties", ()):
            if name != "hostile" or report.when != "call":
                continue
            total = sums.setdefault(counts["engine"], Tally(counts["engine"]))
            for field in fields(Tally):
                if field.name not in ("engine", "broken"):
                    setattr(total, field.name, getattr(total, field.name) + counts[field.name])
            total.broken += [""] * counts["broken"]
    terminalreporter.section("the hostile neighbour")
    terminalreporter.line(HEADING)
    for total in sums.values():
        terminalreporter.line(total.line())
