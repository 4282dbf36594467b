"""`python -m incrowd.adversary.audit`: the table of all audits. Progress goes to standard error.

Exit status 1 when a mutant escapes, a real mechanism is accused or too weakly seen, or a target is missed.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from incrowd.adversary.audit.suite import Line, cases, everything, run, summary


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the audits that the options choose, and print the results."""
    parser = argparse.ArgumentParser(prog="python -m incrowd.adversary.audit", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer runs of real mechanisms and curators")
    parser.add_argument("--json", action="store_true", help="everything as JSON on standard output")
    parser.add_argument("--targets", action="store_true", help="measure the auditor itself instead")
    parser.add_argument("--workers", type=int, default=None, help="processes at a time; one for each core")
    chosen = parser.parse_args(arguments)
    if chosen.targets:
        return targets(chosen.json)
    lines = audited(chosen.quick, chosen.workers)
    if chosen.json:
        print(json.dumps(_finite([line.to_dict() for line in lines]), indent=2))
    else:
        console = Console(highlight=False, markup=False)
        console.print(table(lines))
        console.print(summary(lines))
    return 0 if all(line.right for line in lines) else 1


def audited(quick: bool, workers: int | None) -> list[Line]:
    """All audits in the order of the cases, with a bar that says which was done last."""
    wanted = everything(quick)
    bar = Progress(
        TextColumn("auditing"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
        console=Console(stderr=True),
    )
    lines = []
    with bar:
        task = bar.add_task("", total=len(wanted))
        for line in run(wanted, workers=workers):
            lines.append(line)
            bar.update(task, advance=1, description=f"{line.name}: {line.word}")
    return sorted(lines, key=_order())


def _order() -> Any:
    listed = [(kind, case.name) for kind in ("mutant", "mechanism", "curator") for case in cases(kind)]
    places = {key: place for place, key in enumerate(listed)}
    return lambda line: places[line.kind, line.name]


def table(lines: Sequence[Line]) -> Table:
    """One row for each audit."""
    grid = Table(
        box=None,
        pad_edge=False,
        title="How much of its claim each is found to spend: from samples, its exact law, or a replay",
        title_justify="left",
    )
    # On a narrow terminal the first and last columns shrink; numbers and the verdict never do.
    grid.add_column(no_wrap=True)
    for name, width in (("claimed", 7), ("at least", 8), ("share", 5), ("runs", 7)):
        grid.add_column(name, justify="right", no_wrap=True, min_width=width)
    grid.add_column("how", no_wrap=True, min_width=8)
    grid.add_column(no_wrap=True, min_width=10)
    grid.add_column("where it shows")
    kind = ""
    for line in lines:
        if line.kind != kind:
            kind = line.kind
            grid.add_row(f"{kind.upper()}S", style="bold")
        result = line.audit
        claim = f"{result.epsilon:.3g}" + (f", {result.delta:g}" if result.delta else "")
        grid.add_row(
            line.name,
            claim,
            f"{result.bound:.3f}",
            f"{line.share:.0%}",
            f"{result.samples:,}",
            line.how,
            line.word,
            line.about if line.kind == "mutant" else _where(line),
            style=None if line.right else "bold red",
        )
    return grid


def _where(line: Line) -> str:
    """The event that was tested, or the pairs that were."""
    if line.proof is None:
        return line.audit.event
    return f"{line.proof.pairs:,} pairs, the worst {line.proof.worst}; sampled: {line.audit.closeness:.0%}"


def targets(as_json: bool) -> int:
    """Measure the auditor itself and print whether it reaches its targets."""
    from incrowd.adversary.audit.targets import false_alarms, gaussian_delta, recovered

    measured = []
    for target in (*recovered(), gaussian_delta(), false_alarms()):
        measured.append(target)
        if not as_json:
            print(f"{'reached' if target.reached else 'MISSED':8} {target.name}: {target.found}", flush=True)
    if as_json:
        print(json.dumps([vars(target) for target in measured], indent=2))
    return 0 if all(target.reached for target in measured) else 1


def _finite(value: Any) -> Any:
    """A value with None for infinities and NaN, which JSON does not have."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


if __name__ == "__main__":
    sys.exit(main())
