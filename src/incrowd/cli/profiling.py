"""`incrowd tune`: the owner buys a private profile of her tables, and what it proposes goes into her file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from incrowd.cli import options, screen
from incrowd.errors import BudgetExceeded

if TYPE_CHECKING:
    from incrowd.curator import Curator
    from incrowd.curator.profile import Profile
    from incrowd.curator.tuning import Tuning

File = Annotated[
    Path | None,
    typer.Argument(metavar="[FILE]", show_default=False, help="The owner's file; like --catalog."),
]
Spent = Annotated[
    float,
    typer.Option(
        "--epsilon",
        "-e",
        parser=options.number,
        metavar="NUMBER",
        help="What to spend, once, from the dataset's budget.",
    ),
]
TableName = Annotated[
    str | None, typer.Option("--table", metavar="TABLE", help="The private table; all of them if left out.")
]
ColumnNames = Annotated[
    list[str] | None,
    typer.Option("--column", metavar="COLUMN", help="A column to measure; all of them if left out."),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Spend and write without asking.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say what would be measured, for how much; spend nothing.")
]


def tune(
    file: File = None,
    catalog: options.Catalog = options.CATALOG,
    epsilon: Spent = 1.0,
    delta: options.Delta = None,
    table: TableName = None,
    column: ColumnNames = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    json: options.Json = False,
) -> None:
    """Buy a private profile of tables once, so that questions need not measure what units contribute."""
    from incrowd.catalog import parse
    from incrowd.curator import Curator
    from incrowd.curator.tuning import planned

    path = file or catalog
    with Curator.open(path) as curator:
        tuning = planned(curator, epsilon, table, column, delta)
        if dry_run:
            screen.emit_json(_plan_json(tuning)) if json else _show_plan(tuning)
            return
        if not yes and not json:
            _show_plan(tuning)
            question = f"Spend {screen.promise(epsilon, tuning.price.delta)}, and write {path}?"
            if not typer.confirm(question, err=True):
                screen.complain("Nothing was spent, and nothing written.")
                return
        profile = _bought(curator, epsilon, delta, table, column)
        text = profile.written(path.read_text(encoding="utf-8"))
        parse(text, name=path.name)
        path.write_text(text, encoding="utf-8")
    screen.emit_json({"file": str(path), **profile.to_json()}) if json else _show(profile, path)


def _bought(
    curator: Curator, epsilon: float, delta: float | None, table: str | None, columns: list[str] | None
) -> Profile:
    from incrowd.cli.asking import with_hint

    try:
        with screen.watching() as report:
            return curator.tune(epsilon, table, columns=columns, delta=delta, progress=report)
    except BudgetExceeded as error:
        raise with_hint(error, curator.ledger.remaining(curator.catalog.owner)) from None


def _show_plan(tuning: Tuning) -> None:
    """What would be measured, its price, and how few units could not be seen."""
    lines = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in ("what is measured", "epsilon", "fewer units than this cannot be seen"):
        lines.add_column(name, justify="left" if name.startswith("what") else "right", overflow="fold")
    for measured in tuning.measurements:
        lines.add_row(
            Text(screen.visible(measured.said)), f"{measured.epsilon:.4g}", f"about {measured.unseen:,}"
        )
    console = screen.console()
    console.print(lines)
    total = screen.promise(tuning.price.epsilon, tuning.price.delta)
    console.print(f"{total} in all; nothing was read or spent")
    if not tuning.price.fits:
        console.print("This does not fit what is left:")
        console.print(screen.balance_table(tuning.price.before))


def _plan_json(tuning: Tuning) -> dict[str, Any]:
    return {
        "epsilon": tuning.price.epsilon,
        "delta": tuning.price.delta,
        "fits": tuning.price.fits,
        "measurements": [
            {
                "what": measured.said,
                "table": measured.probe.table,
                "column": measured.probe.column or None,
                "epsilon": measured.epsilon,
                "delta": measured.price.delta,
                "unseen": measured.unseen,
                "sql": measured.probe.sql,
            }
            for measured in tuning.measurements
        ],
    }


def _show(profile: Profile, path: Path) -> None:
    console = screen.console()
    rows = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in ("", "measured", "value", "at 95%", "epsilon"):
        rows.add_column(name, overflow="fold")
    for reading in profile.readings:
        place = f"{reading.table}.{reading.column}" if reading.column else reading.table
        value = Text(screen.visible(reading.value), style="bold" if reading.proposed else "")
        rows.add_row(Text(place), Text(reading.what), value, Text(reading.interval), f"{reading.epsilon:.3g}")
    console.print(rows)
    for remark in profile.remarks:
        console.print(Text(screen.visible(remark), style="dim"))
    cost = "On record: free" if profile.recalled else f"Paid {screen.promise(profile.epsilon, profile.delta)}"
    count = len(profile.proposals)
    console.print(
        f"{cost}. Wrote {count} {'value' if count == 1 else 'values'} into {path}, each marked as bought. "
        "Questions now measure no contributions that are there."
    )
