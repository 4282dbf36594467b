"""What the adversary's commands share: an option, an exit status and signs of life on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from incrowd.cli import screen

BROKEN = 1
"""Exit status when a guarantee or a claim was found broken."""
Picture = Annotated[
    Path | None,
    typer.Option("--picture", metavar="FILE", help="Save a picture, as .html, .svg or .png."),
]


@contextmanager
def spinner(text: str) -> Iterator[None]:
    """Show a spinner while the block runs; nothing if standard error is no terminal."""
    aside = screen.aside()
    columns = (SpinnerColumn(), TextColumn(text), TimeElapsedColumn())
    with Progress(*columns, console=aside, transient=True, disable=not aside.is_terminal) as bar:
        bar.add_task(text, total=None)
        yield


@contextmanager
def run_counter() -> Iterator[Callable[[int, int], None]]:
    """Show a bar of runs done; nothing if standard error is no terminal."""
    aside = screen.aside()
    columns = (
        TextColumn("running"),
        BarColumn(30),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=aside, transient=True, disable=not aside.is_terminal) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
