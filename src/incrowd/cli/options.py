"""The options that several commands share, spelled once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def number(text: str) -> float:
    """A number as typed, or a complaint that quotes it."""
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a number, such as 0.5") from None


Catalog = Annotated[
    Path,
    typer.Option("--catalog", "-c", envvar="INCROWD_CATALOG", metavar="FILE", help="The owner's file."),
]
CATALOG = Path("curator.yaml")
Analyst = Annotated[
    str | None,
    typer.Option(
        "--analyst",
        "-a",
        envvar="INCROWD_ANALYST",
        metavar="NAME",
        help="Who asks; needed where the file names several.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Sql = Annotated[
    str,
    typer.Argument(metavar="SQL", show_default=False, help="The question; - reads it from standard input."),
]
Epsilon = Annotated[
    float | None,
    typer.Option(
        "--epsilon",
        "-e",
        parser=number,
        metavar="NUMBER",
        help="What to pay; with --within, the most to pay.",
    ),
]
Delta = Annotated[
    float | None,
    typer.Option(
        "--delta", parser=number, metavar="NUMBER", help="The delta to pay, which private group keys need."
    ),
]
Within = Annotated[
    float | None,
    typer.Option(
        "--within",
        parser=number,
        metavar="NUMBER",
        help="Pay the least epsilon whose error stays within this; a pilot finds it if it depends on data.",
    ),
]
Confidence = Annotated[
    float | None,
    typer.Option(
        "--confidence",
        parser=number,
        metavar="SHARE",
        help="The confidence of intervals and of --within, such as 0.95.",
    ),
]
Contribution = Annotated[
    int | None,
    typer.Option(
        "--contribution",
        metavar="ROWS",
        help="How many rows one unit may count for; chosen privately if left out.",
    ),
]
Groups = Annotated[
    int | None, typer.Option("--groups", metavar="GROUPS", help="How many groups one unit may count in.")
]
Rescale = Annotated[
    bool, typer.Option("--rescale/--no-rescale", help="Whether to undo the scaling down of heavy units.")
]
Dialect = Annotated[
    str | None,
    typer.Option(
        "--dialect",
        metavar="NAME",
        help="The SQL's dialect: duckdb, postgres, bigquery, snowflake or spark; duckdb if left out.",
    ),
]
