"""`incrowd budget` and `incrowd ledger`: what was spent, what is left, and whether the account is whole.

These commands read no table and create no ledger.
"""

from __future__ import annotations

import math
from contextlib import closing, nullcontext, suppress
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from incrowd.cli import options, screen
from incrowd.errors import InvalidInput, NotPermitted

if TYPE_CHECKING:
    from incrowd.catalog import Catalog
    from incrowd.curator.ledger import Balance, Entry, Ledger

EXPORTED = ("entry", "at", "kind", "analyst", "cost", "question or act", "answers entry", "hash")
Where = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        metavar="PATH",
        help="The ledger itself (a path or URL), where the owner's file is not at hand.",
    ),
]


def budget(
    catalog: options.Catalog = options.CATALOG,
    analyst: options.Analyst = None,
    json: options.Json = False,
) -> None:
    """Show what is left of each budget."""
    from incrowd.catalog import SOLE_ANALYST, load
    from incrowd.curator import Ledger

    declared = load(catalog)
    people = [declared.analyst(analyst)] if analyst is not None else list(declared.analysts) or [SOLE_ANALYST]
    with closing(Ledger.open(declared.ledger_url, declared)) as ledger:
        by_cap: dict[str, Balance] = {}
        for name in people:
            with suppress(NotPermitted) if analyst is None else nullcontext():  # the retired have no budget
                by_cap |= {balance.cap.key: balance for balance in ledger.remaining(name)}
    screen.warn(declared)
    balances = list(by_cap.values())
    if json:
        screen.emit_json(
            {"analyst": analyst, "budgets": [screen.balance_json(balance) for balance in balances]}
        )
        return
    console = screen.console()
    console.print(screen.balance_table(balances))
    console.print(
        Text(
            "“next question” is the largest epsilon that one question may cost now; small ones get further.",
            style="dim",
        )
    )


def _open(catalog: Path, where: str | None) -> tuple[Ledger, Catalog | None]:
    from incrowd.catalog import load
    from incrowd.curator import Ledger

    if where is not None:
        return Ledger.inspect(where), None
    declared = load(catalog)
    return Ledger.inspect(declared.ledger_url or "", declared), declared


def show(
    catalog: options.Catalog = options.CATALOG,
    ledger: Where = None,
    last: Annotated[
        int, typer.Option("--last", metavar="NUMBER", min=1, help="How many entries to show, from the end.")
    ] = 20,
    json: options.Json = False,
) -> None:
    """Show the latest entries of the ledger."""
    opened, declared = _open(catalog, ledger)
    with closing(opened):
        end = opened.head().seq
        entries = list(opened.entries(after=max(0, end - last)))
    if json:
        screen.emit_json({"entries": [_entry_json(entry) for entry in entries]})
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("#", justify="right")
    for name in ("when (UTC)", "what", "who", "cost", "question or act"):
        table.add_column(name, overflow="fold")
    delta = declared.budget.delta if declared is not None else 0.0
    for entry in entries:
        when = entry.at[:19].replace("T", " ")
        table.add_row(
            str(entry.seq),
            when,
            entry.kind,
            Text(screen.visible(entry.analyst)),
            _cost(entry, delta),
            Text(screen.visible(_words(entry))),
        )
    console = screen.console()
    console.print(table)
    if entries and entries[0].seq > 1:
        console.print(Text(f"{entries[0].seq - 1:,} earlier entries; --last shows more", style="dim"))


def export(
    catalog: options.Catalog = options.CATALOG,
    ledger: Where = None,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV, a line for each entry.")] = False,
    json: options.Json = False,
) -> None:
    """Print the whole ledger for an auditor: who asked what, when, at which price. JSON unless --csv."""
    if csv and json:
        raise InvalidInput("Choose one of --csv and --json.")
    opened, declared = _open(catalog, ledger)
    delta = declared.budget.delta if declared is not None else 0.0
    with closing(opened):
        if not csv:
            screen.emit_json({"entries": [_entry_json(entry) for entry in opened.entries()]})
            return
        screen.emit_csv(EXPORTED, (_entry_row(entry, delta) for entry in opened.entries()))


def _entry_row(entry: Entry, delta: float) -> list[Any]:
    answered = entry.content().get("reservation", "")
    words = (entry.kind, entry.analyst, _cost(entry, delta), _words(entry, None))
    return [entry.seq, entry.at, *words, answered, entry.hash]


def _words(entry: Entry, most: int | None = 200) -> str:
    """The question as it was asked, or the owner's act; control characters are shown as codes."""
    content = entry.content()
    match entry.kind:
        case "reserve" | "answer":
            text = str(content.get("words") or entry.question[:12])
        case "change" if "limit" in content:
            change = {name: float(Fraction(by)) for name, by in content["by"].items()}
            text = f"{content['limit']} by epsilon {change['epsilon']:+g}, delta {change['delta']:+g}"
        case "change":
            text = f"{content['retired']} {'retired' if content['since'] else 'may ask again'}"
        case "clock":
            text = f"the day is {content['day']}, not {content['was']}"
        case "restore":
            text = f"a backup up to entry {content['from'].partition(':')[0]} was brought back"
        case "backup":
            text = f"copied to {content['file']}"
        case _:
            text = ""
    words = " ".join(text.split())
    text = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in words)
    return text if most is None or len(text) <= most else text[: most - 3] + "..."


def _cost(entry: Entry, delta: float) -> str:
    if entry.kind != "reserve":
        return ""
    from incrowd.privacy import Guarantee

    guarantee = Guarantee.from_json(entry.content()["guarantee"])
    exact = guarantee.epsilon()
    if math.isfinite(exact):
        return f"epsilon {exact:.4g}"
    at = delta or 1e-6
    return f"epsilon {guarantee.epsilon(at):.4g} at delta {at:g}"


def _entry_json(entry: Entry) -> dict[str, Any]:
    return {
        "seq": entry.seq,
        "at": entry.at,
        "kind": entry.kind,
        "analyst": entry.analyst,
        "question": entry.question,
        "data_version": entry.data_version,
        "body": entry.content(),
        "previous": entry.previous,
        "hash": entry.hash,
    }


def verify(
    catalog: options.Catalog = options.CATALOG,
    ledger: Where = None,
    head: Annotated[
        str | None,
        typer.Option(
            "--head",
            metavar="HEAD",
            help="A head noted earlier, elsewhere; a rewritten past does not run through it.",
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Recompute the whole ledger and say whether anything was altered."""
    from incrowd.curator.ledger import Head

    known = None if head is None else Head.from_text(head)
    opened, _ = _open(catalog, ledger)
    with closing(opened):
        check = opened.verify(known)
    if not check.ok:
        for fault in check.faults:
            screen.aside().print(Text(screen.visible(fault), style="red"))
        check.require()
    if json:
        about = {"entries": check.entries, "reservations": check.reservations, "unanswered": check.unanswered}
        screen.emit_json({"ok": True, **about, "head": str(check.head)})
        return
    console = screen.console()
    console.print(
        Text("✓ ", style="green")
        + Text(f"{check.entries:,} entries, {check.reservations:,} questions paid; nothing was altered.")
    )
    if check.unanswered:
        console.print(
            f"{check.unanswered:,} paid questions have no recorded answer: they still run, or were cut off."
        )
    console.print(Text(f"head {check.head}", style="dim"), soft_wrap=True)


def head(
    catalog: options.Catalog = options.CATALOG, ledger: Where = None, json: options.Json = False
) -> None:
    """Print the ledger's head, to be noted where nobody here can change it."""
    opened, _ = _open(catalog, ledger)
    with closing(opened):
        current = opened.head()
    if json:
        screen.emit_json({"head": str(current), "seq": current.seq, "hash": current.hash})
    else:
        print(current)
