"""`incrowd ledger found` and its kin: what the owner does to the account, each an entry of its chain.

These commands read no table. Only `found` makes a ledger.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from incrowd.cli import options, screen

if TYPE_CHECKING:
    from incrowd.curator import Ledger
    from incrowd.privacy import Charge


File = Annotated[Path, typer.Argument(metavar="FILE", show_default=False, help="The backup's file.")]
Whose = Annotated[
    str,
    typer.Argument(
        metavar="WHOSE", show_default=False, help="An analyst, dataset, group:NAME or day:ANALYST."
    ),
]
Amount = Annotated[
    float,
    typer.Option(
        "--epsilon", "-e", parser=options.number, metavar="NUMBER", help="By how much epsilon changes."
    ),
]


def found(
    catalog: options.Catalog = options.CATALOG,
    give_up: Annotated[
        bool,
        typer.Option(
            "--give-up",
            help="Give up the account that the file had: what was spent on it is counted no more.",
        ),
    ] = False,
    json: options.Json = False,
) -> None:
    """Found the ledger of the owner's file, once, in a free place."""
    from incrowd.curator.ledger.tying import found_for

    declared, ledger = found_for(catalog, give_up=give_up)
    with closing(ledger):
        head = ledger.head()
    if json:
        screen.emit_json({"ledger": declared.ledger_url, "id": declared.id, "head": str(head)})
        return
    screen.warn(declared)
    screen.console().print(Text(f"Founded the ledger {declared.ledger_url}."))


def anchor(catalog: options.Catalog = options.CATALOG, json: options.Json = False) -> None:
    """Note the ledger's head at the anchor that the owner's file names, for the first time or again."""
    from incrowd.catalog import load
    from incrowd.curator import Ledger
    from incrowd.errors import InvalidInput

    declared = load(catalog)
    if declared.anchor is None:
        raise InvalidInput(f"{catalog} names no anchor; add anchor: with a path, a URL or a command.")
    with closing(Ledger.inspect(declared.ledger_url or "", declared)) as ledger:
        ledger.note_head()
        head = ledger.head()
    if json:
        screen.emit_json({"head": str(head)})
    else:
        screen.console().print(Text(f"Noted {head}."), soft_wrap=True)


def backup(file: File, catalog: options.Catalog = options.CATALOG, json: options.Json = False) -> None:
    """Copy the ledger into a new file, while it is in use."""
    from incrowd.curator.ledger.backups import backup

    with closing(_open(catalog)) as ledger:
        head = backup(ledger, file)
    if json:
        screen.emit_json({"file": str(file), "head": str(head)})
    else:
        screen.console().print(Text(f"Wrote {file}, up to entry {head.seq:,}."))


def restore(
    file: File,
    catalog: options.Catalog = options.CATALOG,
    lost: Annotated[
        str | None,
        typer.Option(
            "--lost",
            metavar="EPSILON[,DELTA]",
            help="The most that may have been spent since the backup; needed where no anchor knows it.",
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Bring a backup back, and charge every budget what was spent since."""
    from incrowd.catalog import load
    from incrowd.curator.ledger.backups import restore
    from incrowd.privacy.amounts import from_units

    declared = load(catalog)
    ledger, missing = restore(file, declared, lost=None if lost is None else _read_charge(lost))
    with closing(ledger):
        head = ledger.head()
    epsilon = None if missing.epsilon is None else float(from_units(missing.epsilon))
    if json:
        screen.emit_json({"ledger": declared.ledger_url, "charged_epsilon": epsilon, "head": str(head)})
        return
    said = "an unbounded epsilon" if epsilon is None else f"epsilon {epsilon:g}"
    screen.console().print(
        Text(f"Restored {declared.ledger_url}; every budget was charged {said} for what was lost.")
    )


def clock(catalog: options.Catalog = options.CATALOG, json: options.Json = False) -> None:
    """Say that this machine's clock is right, after it had leapt or nobody had asked for long."""
    from incrowd.curator.ledger.acts import set_day

    with closing(_open(catalog)) as ledger:
        entry = set_day(ledger)
    told = entry.content()
    if json:
        screen.emit_json({"day": told["day"], "was": told["was"]})
    else:
        screen.console().print(f"The ledger's day is {told['day']}; it was {told['was']}.")


def top_up(
    whose: Whose,
    epsilon: Amount = 0.0,
    delta: options.Delta = None,
    catalog: options.Catalog = options.CATALOG,
    json: options.Json = False,
) -> None:
    """Raise a budget by an amount."""
    _change(catalog, whose, epsilon, delta, lower=False, json=json)


def lower(
    whose: Whose,
    epsilon: Amount = 0.0,
    delta: options.Delta = None,
    catalog: options.Catalog = options.CATALOG,
    json: options.Json = False,
) -> None:
    """Lower a budget by an amount; what was spent stays spent."""
    _change(catalog, whose, epsilon, delta, lower=True, json=json)


def retire(
    analyst: Annotated[str, typer.Argument(metavar="ANALYST", show_default=False, help="Who.")],
    undo: Annotated[bool, typer.Option("--undo", help="Let the analyst ask again.")] = False,
    catalog: options.Catalog = options.CATALOG,
    json: options.Json = False,
) -> None:
    """Let an analyst ask no more; what she spent stays spent."""
    from incrowd.curator.ledger.acts import retire

    with closing(_open(catalog)) as ledger:
        retire(ledger, analyst, undo=undo)
    if json:
        screen.emit_json({"analyst": analyst, "retired": not undo})
    else:
        screen.console().print(Text(f"{analyst} may ask {'again' if undo else 'no more'}."))


def _change(
    catalog: Path, whose: str, epsilon: float, delta: float | None, *, lower: bool, json: bool
) -> None:
    from incrowd.curator.ledger.acts import change_limit

    with closing(_open(catalog)) as ledger:
        cap = change_limit(ledger, whose, epsilon, delta or 0.0, lower=lower)
    if json:
        screen.emit_json({"budget": cap.key, "epsilon": cap.epsilon, "delta": cap.delta})
        return
    beside = f", delta {cap.delta:g}" if cap.delta else ""
    screen.console().print(Text(f"{cap.whose} is now epsilon {cap.epsilon:g}{beside}."))


def _open(catalog: Path) -> Ledger:
    from incrowd.catalog import load
    from incrowd.curator import Ledger

    declared = load(catalog)
    return Ledger.open(declared.ledger_url, declared)


def _read_charge(text: str) -> Charge:
    """What EPSILON[,DELTA] charges."""
    from incrowd.privacy import Charge, approximate, pure

    epsilon, _, delta = (part.strip() for part in text.partition(","))
    amounts = options.number(epsilon), options.number(delta or "0")
    if amounts == (0, 0):
        return Charge.nothing()
    return approximate(*amounts).charge() if amounts[1] else pure(amounts[0]).charge()
