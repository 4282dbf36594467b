"""`incrowd audit`: audits a command, an address or a function, or Incrowd itself, and prints the verdict.

Exit status: 0 done, 1 a claim was found broken, 2 wrong input.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from incrowd.adversary.commands import pictures
from incrowd.adversary.commands.auditing import AuditOptions
from incrowd.adversary.commands.terminal import BROKEN, Picture, run_counter
from incrowd.cli import options, screen

CommandLine = Annotated[
    str | None,
    typer.Option(
        "--command",
        metavar="LINE",
        help="A command: data as JSON on its standard input, an output on its standard output.",
    ),
]
Url = Annotated[
    str | None, typer.Option("--url", metavar="ADDRESS", help="An HTTP address that data is POSTed to.")
]
Mechanism = Annotated[
    str | None,
    typer.Option("--mechanism", metavar="MODULE:NAME", help="A Python function of the data."),
]
X = Annotated[str | None, typer.Option("--x", metavar="JSON", help="The data; @FILE reads it.")]
XPrime = Annotated[
    str | None, typer.Option("--x-prime", metavar="JSON", help="Neighbouring data; @FILE reads it.")
]
Values = Annotated[
    str | None,
    typer.Option(
        "--values",
        metavar="JSON",
        help="In place of --x-prime: values of a record, to search for a neighbour with.",
    ),
]
Relation = Annotated[
    str, typer.Option("--relation", metavar="KIND", help="For --values: add-remove or replace.")
]
Epsilon = Annotated[
    float | None,
    typer.Option(
        "--epsilon", "-e", parser=options.number, metavar="NUMBER", help="The epsilon that is claimed."
    ),
]
Delta = Annotated[
    float,
    typer.Option("--delta", parser=options.number, metavar="NUMBER", help="The delta that is claimed."),
]
Samples = Annotated[
    int | None,
    typer.Option(
        "--samples",
        metavar="N",
        show_default=False,
        help="Runs on either neighbour: 20,000; 5,000 requests; 1,000 starts of a command.",
    ),
]
Confidence = Annotated[
    float,
    typer.Option(
        "--confidence", parser=options.number, metavar="SHARE", help="How sure an accusation must be."
    ),
]
InBatches = Annotated[
    bool,
    typer.Option("--batch", help='Ask for many outputs at once: {"data": ..., "runs": N}.'),
]
Workers = Annotated[
    int | None, typer.Option("--workers", metavar="N", help="Commands or requests at a time.")
]
Seconds = Annotated[
    float,
    typer.Option(
        "--seconds", parser=options.number, metavar="NUMBER", help="When a run counts as a time-out."
    ),
]
Quick = Annotated[bool, typer.Option("--quick", help="Without a target: fewer runs of what is not broken.")]


def audit(
    command: CommandLine = None,
    url: Url = None,
    mechanism: Mechanism = None,
    x: X = None,
    x_prime: XPrime = None,
    values: Values = None,
    relation: Relation = "add-remove",
    epsilon: Epsilon = None,
    delta: Delta = 0.0,
    samples: Samples = None,
    confidence: Confidence = 0.999,
    batch: InBatches = False,
    workers: Workers = None,
    seconds: Seconds = 60.0,
    quick: Quick = False,
    picture: Picture = None,
    json: options.Json = False,
) -> None:
    """Prove from outputs alone that code breaks the epsilon it claims; without a target, audit Incrowd."""
    asked = AuditOptions(
        command=command,
        url=url,
        mechanism=mechanism,
        x=x,
        x_prime=x_prime,
        values=values,
        relation=relation,
        epsilon=epsilon,
        delta=delta,
        samples=samples,
        confidence=confidence,
        batch=batch,
        workers=workers,
        seconds=seconds,
        quick=quick,
    )
    asked.check()
    if picture is not None:
        pictures.check(picture)
    passed = _audit_target(asked, picture, json) if asked.targets else _audit_incrowd(quick, picture, json)
    if not passed:
        raise typer.Exit(BROKEN)


def _audit_target(asked: AuditOptions, picture: Path | None, json: bool) -> bool:
    """Audit what the user named; False if its claim is broken."""
    from incrowd.adversary.commands import render

    plan = asked.plan()
    with run_counter() as progress:
        result = plan.run(progress)
    if json:
        x, x_prime = result.pair
        screen.emit_json({"target": plan.subject.name, **result.to_dict(), "x": x, "x_prime": x_prime})
    else:
        screen.console().print(render.audit_page(result, plan.searches))
    if picture is not None:
        pictures.save([pictures.audit_chart(result)], picture)
    return result.verdict != "violates"


def _audit_incrowd(quick: bool, picture: Path | None, json: bool) -> bool:
    """Audit every mutant, every real mechanism and the curator; False if any verdict is wrong."""
    from incrowd.adversary.audit.__main__ import audited, table
    from incrowd.adversary.audit.suite import summary

    lines = audited(quick, None)
    if json:
        screen.emit_json({"summary": summary(lines), "audits": [line.to_dict() for line in lines]})
    else:
        console = screen.console()
        console.print(table(lines))
        console.print(Text(summary(lines)))
    if picture is not None:
        pictures.save([pictures.table_chart(lines)], picture)
    return all(line.right for line in lines)
