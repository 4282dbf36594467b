"""Formats what `incrowd attack` and `incrowd audit` print."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Group, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from incrowd.adversary.attacks.outcome import Attempt, Report
from incrowd.adversary.audit import Audit, Tested
from incrowd.adversary.commands.roster import Entry
from incrowd.cli import screen
from incrowd.explain.meaning import percent_down, percent_up

MOST_PLACES = 4
"""How many places of an axis are shown for each release; JSON and pictures have all."""
WIDTHS = {"success": 7, "between": 17, "guessing": 8, "allowed": 8}


def listed(entries: Sequence[Entry]) -> RenderableType:
    """The attacks, a sentence each."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("attack", no_wrap=True)
    table.add_column("what it shows", overflow="fold")
    for entry in entries:
        table.add_row(entry.name, entry.about)
    return Group(table, Text("\nRun one: incrowd attack differencing; or all of them: incrowd attack all"))


def report_page(report: Report) -> RenderableType:
    """A report: the assumptions, the results, the lesson."""
    shown = _thinned(report)
    guesses = {attempt.guessing for attempt in report.attempts}
    success = Text(f"Success: {report.succeeds[:1].lower()}{report.succeeds[1:]}")
    if len(guesses) == 1:
        success.append(f" Guessing is right in {share(min(guesses))}.")
    parts: list[RenderableType] = [Text(report.title, style="bold"), Text(report.knows), success, Text("")]
    parts += _along(report, shown, len(guesses) > 1) if report.axis else [_rows(shown, len(guesses) > 1)]
    if len(shown) < len(report.attempts):
        parts.append(
            Text(f"{len(shown)} of {len(report.attempts)} shown; --json and --picture have all", style="dim")
        )
    parts += [Text(""), Text(report.lesson, style="cyan")]
    parts += [Text(line, style="dim") for line in _lines(report.details)]
    return Group(*parts)


def _thinned(report: Report) -> list[Attempt]:
    """A few attempts of each release along the axis: first, last, some between, and all that broke."""
    if not report.axis:
        return list(report.attempts)
    shown = []
    for name in dict.fromkeys(attempt.against for attempt in report.attempts):
        along = [attempt for attempt in report.attempts if attempt.against == name]
        step = max(1.0, (len(along) - 1) / (MOST_PLACES - 1))
        places = {round(step * place) for place in range(MOST_PLACES)}
        broken = {
            place for place, attempt in enumerate(along) if attempt.holds is False and not attempt.claimed
        }
        shown += [attempt for place, attempt in enumerate(along) if place in places | broken]
    return shown


def _rows(attempts: Sequence[Attempt], guessing: bool) -> Table:
    """A row for each release."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("against", overflow="fold")
    for name, justify in _columns(attempts[0], guessing):
        table.add_column(name, justify=justify, no_wrap=True)
    for attempt in attempts:
        table.add_row(Text(attempt.against), *_cells(attempt, guessing))
    return table


def _along(report: Report, attempts: Sequence[Attempt], guessing: bool) -> Iterator[RenderableType]:
    """The releases one below the other, with a row for each place on the axis."""
    columns = _columns(attempts[0], guessing)

    def grid(style: str = "") -> Table:
        layout = Table.grid(padding=(0, 2, 0, 0))
        layout.add_column(justify="right", width=12, style=style)
        for name, justify in columns:
            layout.add_column(justify=justify, width=WIDTHS.get(name.split(" ")[-1]), style=style)
        return layout

    head = grid("dim")
    head.add_row(Text(report.axis), *(name for name, _ in columns))
    yield head
    for name in dict.fromkeys(attempt.against for attempt in attempts):
        yield Text(name, style="bold")
        rows = grid()
        for attempt in attempts:
            if attempt.against == name:
                rows.add_row("" if attempt.x is None else f"{attempt.x:.3g}", *_cells(attempt, guessing))
        yield rows


def _columns(first: Attempt, guessing: bool) -> list[tuple[str, JustifyMethod]]:
    columns: list[tuple[str, JustifyMethod]] = [
        ("success", "right"),
        (f"{first.success.confidence:.0%} between", "left"),
        ("guessing", "right"),
        ("allowed", "right"),
        ("", "left"),
    ]
    return [column for column in columns if guessing or column[0] != "guessing"]


def _cells(attempt: Attempt, guessing: bool) -> list[Text]:
    rate = attempt.success
    cells = [
        Text(share(rate.value)),
        Text(f"{percent_down(rate.low)} and {percent_up(rate.high)}", style="dim"),
    ]
    if guessing:
        cells.append(Text(share(attempt.guessing)))
    allowed = "" if attempt.allowed is None else f"≤ {percent_up(attempt.allowed)}"
    return [*cells, Text(allowed), verdict(attempt)]


def verdict(attempt: Attempt) -> Text:
    """Whether the release's guarantee held, in a word or two."""
    if attempt.holds is None:
        return Text("no guarantee", style="dim")
    if attempt.holds:
        return Text("holds", style="green")
    return Text("breaks its claim", style="yellow") if attempt.claimed else Text("BROKEN", style="bold red")


def share(value: float) -> str:
    """A share as a percentage, with more digits where it is small.

    >>> share(0.975), share(0.00012), share(0.0)
    ('97.5%', '0.012%', '0%')
    """
    if value == 0 or value >= 0.001:
        return f"{100 * value:.1f}".removesuffix(".0") + "%"
    return f"{100 * value:.2g}%"


def _lines(details: Mapping[str, Any], before: str = "") -> Iterator[str]:
    for name, value in details.items():
        if isinstance(value, Mapping):
            yield from _lines(value, f"{before}{name}, ")
        elif isinstance(value, list | tuple):
            yield f"{before}{name}: {', '.join(screen.number(item) for item in value)}"
        else:
            yield f"{before}{name}: {screen.number(value)}"


def audit_page(result: Audit, searched: bool = False) -> RenderableType:
    """An audit: the verdict, the bound beside the claim, and the event that shows it."""
    violates = result.verdict == "violates"
    claim = screen.promise(result.epsilon, result.delta)
    bound = f"{screen.round_down(result.bound, 4):g}"
    said = (
        f": epsilon is at least {bound}, above the claim."
        if violates
        else ": nothing in these runs contradicts the claim. That is no proof of it."
    )
    part = f"{result.closeness:.0%} of the claim, " if result.epsilon else ""
    sure = f"with {result.confidence * 100:.7g}% confidence"
    rows: list[tuple[str, str]] = [
        ("claimed", claim),
        ("at least", f"epsilon {bound}, {part}{sure}"),
        ("about", f"epsilon {screen.number(result.estimate)} by the frequencies themselves"),
        ("event", result.event),
        ("happened", _frequencies(result.tested)),
    ]
    if result.delta:
        low, high = result.delta_interval
        rows.append(("delta", f"between {low:.4g} and {high:.4g} at the claimed epsilon"))
    if searched:
        rows.append(("between", f"{result.pair[0]} and {result.pair[1]}"))
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, text in rows:
        grid.add_row(name, Text(text))
    return Group(Text.assemble((result.verdict, "bold red" if violates else "bold green"), said), grid)


def _frequencies(tested: Tested) -> str:
    first, second = (share(hits / tested.runs) for hits in tested.hits)
    return f"in {first} of {tested.runs:,} runs on x, in {second} of those on x'"
