"""`incrowd ask` and `incrowd price`: the analyst's commands."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from incrowd.cli import agreeing, options, screen
from incrowd.errors import BudgetExceeded, InvalidInput

if TYPE_CHECKING:
    from incrowd.curator import Answer, Balance, Curator, Price
    from incrowd.curator.request import Options


def ask(
    sql: options.Sql,
    catalog: options.Catalog = options.CATALOG,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    within: options.Within = None,
    confidence: options.Confidence = None,
    analyst: options.Analyst = None,
    contribution: options.Contribution = None,
    groups: options.Groups = None,
    rescale: options.Rescale = True,
    dialect: options.Dialect = None,
    intervals: Annotated[
        bool, typer.Option("--intervals/--no-intervals", help="Whether to give each number its interval.")
    ] = True,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV instead of a table.")] = False,
    yes: agreeing.Yes = False,
    json: options.Json = False,
) -> None:
    """Ask a question in SQL and pay for the answer."""
    from incrowd.curator.held import for_python, rows_of

    if csv and json:
        raise InvalidInput("Choose either --csv or --json.")
    question = read_question(sql)
    asked: Options = {
        "delta": delta,
        "within": within,
        "confidence": confidence,
        "analyst": analyst,
        "contribution": contribution,
        "groups": groups,
        "rescale": rescale,
        "dialect": dialect,
    }
    with _open(catalog) as curator:
        if within is not None and epsilon is None and not yes:
            agreeing.refuse_unless_agreed(curator.price(question, **asked))
        try:
            with screen.watching() as report:
                answer = curator.ask(question, epsilon, progress=report, **asked)
        except BudgetExceeded as error:
            raise with_hint(error, curator.budget(analyst)) from None
        table = for_python(answer.to_arrow(answer.confidence if intervals else None))
        if json:
            screen.emit_json(answer_json(answer, table, intervals))
        elif csv:
            screen.emit_csv(table.column_names, rows_of(table))
        else:
            show_answer(answer, table)


def price(
    sql: options.Sql,
    catalog: options.Catalog = options.CATALOG,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    within: options.Within = None,
    confidence: options.Confidence = None,
    analyst: options.Analyst = None,
    contribution: options.Contribution = None,
    groups: options.Groups = None,
    rescale: options.Rescale = True,
    dialect: options.Dialect = None,
    json: options.Json = False,
) -> None:
    """Say what a question would cost and how wrong its answer would be, without reading a row."""
    question = read_question(sql)
    with _open(catalog) as curator:
        offer = curator.price(
            question,
            epsilon,
            delta=delta,
            within=within,
            confidence=confidence,
            analyst=analyst,
            contribution=contribution,
            groups=groups,
            rescale=rescale,
            dialect=dialect,
        )
    if json:
        screen.emit_json(price_json(offer))
    else:
        show_price(offer)


def read_question(sql: str) -> str:
    """The SQL itself, or standard input if it is -."""
    return sys.stdin.read() if sql == "-" else sql


def _open(catalog: Path) -> Curator:
    from incrowd.curator import Curator

    return Curator.open(catalog)


def with_hint(error: BudgetExceeded, balances: tuple[Balance, ...]) -> BudgetExceeded:
    """The refusal, with the largest epsilon that would still fit."""
    most = screen.round_down(min((balance.affordable for balance in balances), default=0.0))
    said = str(error).rstrip(".")
    hint = f"; an epsilon of {most:g} still fits" if most else "; nothing fits any more"
    return BudgetExceeded(f"{said}{hint}.", asked=error.asked, left=error.left)


def show_answer(answer: Answer, table: Any) -> None:
    """The answer as a table, what it cost, and what to know about it."""
    console = screen.console()
    console.print(screen.answer_table(table, answer.confidence))
    if table.num_rows > screen.MOST_ROWS:
        console.print(
            f"... {table.num_rows - screen.MOST_ROWS:,} more rows; --csv prints them all", style="dim"
        )
    for note in answer.notes:
        console.print(Text(screen.visible(note), style="dim"))
    epsilon, delta = answer.paid
    free = answer.recalled and not epsilon
    on_record = "on record: free" if answer.plan.leaves else "free"
    cost = on_record if free else f"paid {screen.promise(epsilon, delta)}"
    if answer.pilot is not None and not free:
        cost += ", with its pilot"
    tightest = min(answer.remaining, key=screen.share_left, default=None)
    line = Text(cost)
    if tightest is not None:
        share = screen.share_left(tightest)
        line = (
            line
            + Text("   ")
            + screen.bar(share, 10)
            + Text(f" {screen.percent(share)} left of {_lower(tightest.cap.whose)}")
        )
    console.print(line)


def _lower(words: str) -> str:
    return words[:1].lower() + words[1:]


def answer_json(answer: Answer, table: Any, intervals: bool) -> dict[str, Any]:
    """Everything in an answer, as plain values."""
    epsilon, delta = answer.paid
    return {
        "columns": table.column_names,
        "rows": table.to_pylist(),
        "confidence": answer.confidence if intervals else None,
        "epsilon": epsilon,
        "delta": delta,
        "recalled": answer.recalled,
        "pilot_epsilon": None if answer.pilot is None else answer.pilot.paid[0],
        "factors": dict(answer.factors),
        "caps": dict(answer.caps),
        "beyond": dict(answer.beyond),
        "notes": list(answer.notes),
        "remaining": [screen.balance_json(balance) for balance in answer.remaining],
    }


def show_price(price: Price) -> None:
    """The price, how it is split, the expected error, and what would be left."""
    console = screen.console()
    cost = screen.promise(price.epsilon, price.delta)
    if price.steps:
        cost = f"at most {cost}, of which epsilon {price.steps[0].epsilon:g} for a pilot"
    console.print(f"{cost}; nothing was read or spent")
    widths = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    widths.add_column("column", overflow="fold")
    widths.add_column(f"{price.confidence * 100:g}% of answers within", justify="right")
    for name, width in price.halfwidths.items():
        if width is not None:
            said = f"± {screen.number(float(f'{width:.4g}'))}"
        else:
            said = str(price.expected.get(name, "known with the answer"))
        widths.add_row(Text(screen.visible(name)), Text(said))
    console.print(widths)
    lines = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in ("what is released", "noise", "share"):
        lines.add_column(name, overflow="fold")
    for line in price.lines:
        share = f"mu {line.mu:.4g}" if line.noise == "gaussian" else f"epsilon {float(line.epsilon):.4g}"
        share += f", delta {float(line.delta):.3g}" if line.delta else ""
        lines.add_row(Text(screen.visible(line.label)), line.noise, share)
    console.print(lines)
    for note in price.notes:
        console.print(Text(screen.visible(note), style="dim"))
    console.print("After paying, there would be left:" if price.fits else "This does not fit what is left:")
    console.print(screen.balance_table(price.remaining if price.fits else price.before))


def price_json(price: Price) -> dict[str, Any]:
    """Everything in a price, as plain values."""
    return {
        "epsilon": price.epsilon,
        "delta": price.delta,
        "confidence": price.confidence,
        "halfwidths": dict(price.halfwidths),
        "expected": {
            name: {"halfwidth": width.halfwidth, "rows": width.rows, "ranks": width.ranks}
            for name, width in price.expected.items()
        },
        "pilot_epsilon": price.steps[0].epsilon if price.steps else None,
        "caps": dict(price.caps),
        "lines": [
            {
                "what": line.label,
                "kind": line.kind,
                "noise": line.noise,
                "epsilon": None if line.noise == "gaussian" else float(line.epsilon),
                "mu": line.mu if line.noise == "gaussian" else None,
                "delta": float(line.delta),
            }
            for line in price.lines
        ],
        "notes": list(price.notes),
        "fits": price.fits,
        "remaining": [screen.balance_json(balance) for balance in price.before],
        "remaining_after": [screen.balance_json(balance) for balance in price.remaining]
        if price.fits
        else None,
    }
