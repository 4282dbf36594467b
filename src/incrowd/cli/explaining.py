"""`incrowd explain`: epsilon in odds, and what a list of releases adds up to under each theorem."""

from __future__ import annotations

import math
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from incrowd.cli import options, screen


def epsilon(
    value: Annotated[
        float | None,
        typer.Argument(
            parser=options.number,
            metavar="EPSILON",
            show_default=False,
            help="The epsilon; a ladder of them if left out.",
        ),
    ] = None,
    delta: Annotated[
        float, typer.Option("--delta", parser=options.number, metavar="NUMBER", help="The delta beside it.")
    ] = 0.0,
    json: options.Json = False,
) -> None:
    """Say what an epsilon means for one person, in words and odds."""
    from incrowd.explain.meaning import LADDER, explain_epsilon

    meanings = [explain_epsilon(rung, delta) for rung in ([value] if value is not None else LADDER)]
    if json:
        told = [_meaning_json(meaning) for meaning in meanings]
        screen.emit_json(told[0] if value is not None else {"ladder": told})
    elif value is not None:
        _show_meaning(meanings[0])
    else:
        _show_ladder(meanings)


def _show_meaning(meaning: Any) -> None:
    from incrowd.explain.meaning import percent_down, percent_up

    console = screen.console()
    console.print(Text(screen.promise(meaning.epsilon, meaning.delta), style="bold"))
    factor = screen.round_up(meaning.factor, 3) if math.isfinite(meaning.factor) else "any number"
    console.print(
        "Whether or not one person is in the table, every answer is about as likely: the chances differ by a "
        f"factor of at most {factor}"
        + (f", up to a probability of {meaning.delta:g}." if meaning.delta else ".")
    )
    console.print(meaning.sentence)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in ("sure of a guess before", "afterwards at least", "at most"):
        table.add_column(name, justify="right")
    for belief in meaning.beliefs:
        table.add_row(f"{belief.prior * 100:g}%", percent_down(belief.low), percent_up(belief.high))
    console.print(table)
    console.print(meaning.verdict)


def _show_ladder(meanings: list[Any]) -> None:
    from incrowd.explain.meaning import percent_up

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("epsilon", justify="right")
    table.add_column("1% sure becomes", justify="right")
    table.add_column("50% sure becomes", justify="right")
    table.add_column("which is", overflow="fold")
    for meaning in meanings:
        strength = meaning.verdict.partition(":")[0]
        table.add_row(
            f"{meaning.epsilon:g}",
            f"≤ {percent_up(meaning.at(0.01).high)}",
            f"≤ {percent_up(meaning.at(0.5).high)}",
            strength,
        )
    console = screen.console()
    console.print(
        "How sure anyone can become of a guess about one person, at most, from all answers together:"
    )
    console.print(table)


def _meaning_json(meaning: Any) -> dict[str, Any]:
    return {
        "epsilon": meaning.epsilon,
        "delta": meaning.delta,
        "factor": meaning.factor,
        "failure": meaning.failure,
        "sentence": meaning.sentence,
        "verdict": meaning.verdict,
        "beliefs": [
            {"prior": belief.prior, "low": belief.low, "high": belief.high} for belief in meaning.beliefs
        ],
    }


def compose(
    releases: Annotated[
        list[str],
        typer.Argument(
            metavar="RELEASE...",
            show_default=False,
            help="Such as laplace:0.01*1000 gaussian:0.1*100 rr:0.1*20.",
        ),
    ],
    delta: Annotated[
        float,
        typer.Option(
            "--delta", parser=options.number, metavar="NUMBER", help="The delta at which epsilon is read."
        ),
    ] = 1e-6,
    json: options.Json = False,
) -> None:
    """Say what a fixed list of releases adds up to, by each composition theorem."""
    from incrowd.explain.composition import read_releases
    from incrowd.privacy import compare

    guarantee = read_releases(releases)
    rows = compare(guarantee, delta)
    if json:
        told = [{"method": row.method, "epsilon": row.epsilon, "source": row.source} for row in rows]
        screen.emit_json({"delta": delta, "releases": [str(guarantee)], "methods": told})
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("theorem")
    table.add_column(f"epsilon at delta {delta:g}", justify="right")
    table.add_column("by", style="dim", overflow="fold")
    for row in rows:
        shown = "does not apply" if math.isinf(row.epsilon) else screen.round_up(row.epsilon)
        table.add_row(row.method, Text(shown, style="bold" if row.method == "exact" else ""), row.source)
    console = screen.console()
    console.print(table)
    console.print(
        Text(
            "Upper bounds for a list fixed beforehand; filters hold analysts who decide as they go.",
            style="dim",
        )
    )
