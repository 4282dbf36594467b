"""How commands print: consoles, tables of answers, budget bars, JSON. Decisions are made elsewhere."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import sys
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from itertools import chain
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    import pyarrow as pa

    from incrowd.catalog import Catalog
    from incrowd.curator import Balance

PATIENCE = 1.0
"""Seconds that a question may run before a progress bar appears."""
BAR = 20
MOST_ROWS = 200
"""How many rows of an answer a terminal shows; CSV and JSON have all."""

_STRANGE = re.compile(r"[^\n -~]")


def console() -> Console:
    """A new console on standard output, which tests and pipes may have replaced since the last call."""
    return Console(highlight=False, markup=False, soft_wrap=False)


def aside() -> Console:
    """A new console on standard error: progress, questions and remarks, never results."""
    return Console(stderr=True, highlight=False, markup=False)


def complain(sentence: str) -> None:
    """Print one sentence on standard error, on one line."""
    print(visible(" ".join(sentence.split())), file=sys.stderr)


def visible(text: str) -> str:
    """Text that a terminal shows as it is: characters that would steer it are written as escapes.

    Keys come from rows, and a name such as ESC ]0;... would set the window's title, or worse.

    >>> visible("caf\u00e9\x1b[2J")
    'caf\u00e9\\\\x1b[2J'
    """
    return "".join(
        letter.encode("unicode_escape", "backslashreplace").decode("ascii") if _steers(letter) else letter
        for letter in text
    )


def _steers(letter: str) -> bool:
    """Whether a character is for a terminal and not for its reader: controls, bidi marks, half letters."""
    return unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")


def csv_cell(value: Any, terminal: bool = False) -> Any:
    """A value of a CSV file, with an apostrophe before text that a spreadsheet would compute.

    On a terminal, text also has its escapes; in a file or a pipe it is the value itself.

    >>> csv_cell("=HYPERLINK(A1)"), csv_cell(-1.5), csv_cell("a"), csv_cell("\a", terminal=True)
    ("'=HYPERLINK(A1)", -1.5, 'a', '\\\\x07')
    """
    if not isinstance(value, str):
        return value if not terminal or isinstance(value, int | float | None) else visible(str(value))
    formula = value.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
    cell = f"'{value}" if formula else value
    return visible(cell) if terminal else cell


def emit_csv(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print CSV; NULL is an empty field."""
    terminal = sys.stdout.isatty()
    for row in chain([names], rows):
        sys.stdout.write(_csv_line("" if value is None else csv_cell(value, terminal) for value in row))
    sys.stdout.flush()


def _csv_line(cells: Iterable[Any]) -> str:
    """A line of CSV that ends in LF. A cell with CR is quoted, as for lines that end in CR LF."""
    line = io.StringIO(newline="")
    csv.writer(line).writerow(cells)
    return line.getvalue().removesuffix("\r\n") + "\n"


def warn(catalog: Catalog) -> None:
    """Print a line on standard error for each budget that protects nobody."""
    from incrowd.catalog import weak_promises

    for sentence in weak_promises(catalog):
        complain(f"Warning: {sentence}")


def emit_json(value: object) -> None:
    """Print strict JSON: no NaN or infinities, dates as text, what steers a terminal as JSON's escapes."""
    text = json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False)
    print(_STRANGE.sub(lambda found: json.dumps(found[0])[1:-1] if _steers(found[0]) else found[0], text))


def plain(value: Any) -> Any:
    """A value as plain JSON types; NaN and infinities become null.

    >>> plain({"a": float("inf"), "b": [date(2024, 2, 29), 1.5]})
    {'a': None, 'b': ['2024-02-29', 1.5]}
    """
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else None
        case Mapping():
            return {str(key): plain(item) for key, item in value.items()}
        case datetime():
            return value.isoformat(sep=" ")
        case date():
            return value.isoformat()
        case Decimal():
            return float(value)
        case list() | tuple():
            return [plain(item) for item in value]
    return str(value)


@contextmanager
def watching() -> Iterator[Callable[[float], None]]:
    """Yield a callback for progress; on a terminal, a bar appears once a question takes long."""
    screen, started = aside(), time.monotonic()
    columns = (
        TextColumn("asking the database"),
        BarColumn(30),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
    )
    bar = Progress(*columns, console=screen, transient=True)
    task = bar.add_task("ask", total=1.0)
    shown = False

    def report(share: float) -> None:
        nonlocal shown
        if not shown and screen.is_terminal and time.monotonic() - started > PATIENCE:
            bar.start()
            shown = True
        if shown:
            bar.update(task, completed=share)

    try:
        yield report
    finally:
        if shown:
            bar.stop()


def answer_table(answer: pa.Table, confidence: float, *, most: int = MOST_ROWS) -> Table:
    """The rows of an answer; each number with its interval beside it."""
    names, rows = answer.column_names, answer.slice(0, most).to_pylist()
    with_ends = {name for name in names if f"{name}_low" in names and f"{name}_high" in names}
    ends = {f"{name}{end}" for name in with_ends for end in ("_low", "_high")}
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    columns: list[list[Text]] = []
    for name in names:
        if name in ends:
            continue
        between = [(row[f"{name}_low"], row[f"{name}_high"]) for row in rows] if name in with_ends else []
        places = decimals(between)
        table.add_column(
            Text(visible(name)), justify="right" if _numeric(rows, name) else "left", overflow="fold"
        )
        columns.append([Text(number(row[name], places)) for row in rows])
        if name in with_ends:
            table.add_column(Text(f"{confidence * 100:g}% between"), style="dim", overflow="fold")
            columns.append(
                [Text(f"{number(low, places)} and {number(high, places)}") for low, high in between]
            )
    for cells in zip(*columns, strict=True):
        table.add_row(*cells)
    return table


def _numeric(rows: Sequence[Mapping[str, Any]], name: str) -> bool:
    return all(isinstance(row[name], int | float | None) and not isinstance(row[name], bool) for row in rows)


def decimals(ends: Sequence[tuple[Any, Any]]) -> int | None:
    """How many decimals are worth printing: about one digit of the narrowest interval.

    >>> decimals([(36.86, 37.05), (39.4, 39.6)]), decimals([(1.0, 9.0)])
    (2, 0)
    """
    widths = [
        (high - low) / 2
        for low, high in ends
        if isinstance(low, float) and isinstance(high, float) and math.isfinite(high - low) and high > low
    ]
    if not widths:
        return None
    return max(0, min(9, 1 - math.ceil(math.log10(min(widths)))))


def number(value: Any, places: int | None = None) -> str:
    """A value as people read it.

    >>> number(48842), number(36.9512, 2), number(1234.5678), number(None), number(0.00012345)
    ('48,842', '36.95', '1,234.57', 'NULL', '0.00012345')
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        if not math.isfinite(value):
            return {math.inf: "∞", -math.inf: "-∞"}.get(value, "no number")
        if places is not None:
            return f"{value:,.{places}f}"
        return f"{value:,.6g}" if abs(value) < 1e6 else f"{value:,.0f}"
    return visible(str(value))


def promise(epsilon: float, delta: float) -> str:
    """An (epsilon, delta) as text."""
    return f"epsilon {epsilon:.6g}" + (f", delta {delta:.3g}" if delta else "")


def share_left(balance: Balance) -> float:
    """The part of a cap that is left, from 0 to 1."""
    from incrowd.privacy import Charge
    from incrowd.privacy.filters import remaining

    full, left = remaining(balance.cap.limit, Charge.nothing()), balance.left
    # A cap may be counted in two ways, of which an ask need fit only one.
    shares = [rest / whole for rest, whole in ((left.main, full.main), (left.epsilon, full.epsilon)) if whole]
    return max(0.0, min(1.0, max(shares, default=0.0)))


def balance_json(balance: Balance) -> dict[str, Any]:
    """A balance as plain values; `left` is in the cap's currency (`kind`), `left_epsilon` by adding up."""
    return {
        "cap": balance.cap.key,
        "whose": balance.cap.whose,
        "epsilon": balance.cap.epsilon,
        "delta": balance.cap.delta,
        "daily": balance.cap.daily,
        "kind": balance.left.kind,
        "left": balance.left.main,
        "left_epsilon": balance.left.epsilon,
        "left_delta": balance.left.delta,
        "left_share": share_left(balance),
        "largest_epsilon": balance.affordable,
    }


def percent(share: float) -> str:
    """A share in whole percent, rounded down."""
    return f"{math.floor(share * 100 + 1e-9)}%"


def bar(share: float, width: int = BAR) -> Text:
    """What is left as a bar: full at 1, red when little is left."""
    full = min(width, max(1 if share > 0 else 0, round(share * width)))
    colour = "green" if share > 0.5 else "yellow" if share > 0.2 else "red"
    return Text("█" * full, style=colour) + Text("░" * (width - full), style="dim")


def balance_table(balances: Sequence[Balance]) -> Table:
    """Each cap with a bar of what is left and the largest question that it still allows."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("budget", overflow="fold")
    table.add_column("left", min_width=BAR)
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("next question", justify="right", no_wrap=True)
    for balance in balances:
        share = share_left(balance)
        most = round_down(balance.affordable)
        table.add_row(
            Text(visible(balance.cap.whose))
            + Text(f"\n{promise(balance.cap.epsilon, balance.cap.delta)}", style="dim"),
            bar(share),
            Text(percent(share)),
            Text(f"≤ {most:g}" if most else "none"),
        )
    return table


def round_down(value: float, digits: int = 2) -> float:
    """A positive number with few digits, rounded down.

    >>> round_down(0.61104), round_down(0.0)
    (0.61, 0.0)
    """
    if value <= 0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    # 0.5999999999999999 is what binary numbers make of 0.6.
    return min(value, float(f"{math.floor(value / unit + 1e-9) * unit:.{digits + 1}g}"))


def round_up(value: float, digits: int = 6) -> str:
    """A positive number with few digits, rounded up, as every upper bound is printed.

    >>> round_up(1.0000001), round_up(2.0), round_up(0.1), round_up(2.718281, 3)
    ('1.00001', '2', '0.1', '2.72')
    """
    shown = float(f"{value:.{digits}g}")
    if shown < value:
        places = digits - 1 - math.floor(math.log10(value))
        shown = math.ceil(value * 10.0**places) / 10.0**places
    return f"{shown:.{digits}g}"
