"""Draws audits and saves pictures. Calls need the packages of the `plot` extra."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from incrowd.adversary.attacks.outcome import Rate
from incrowd.adversary.audit import Audit
from incrowd.adversary.audit.suite import Line
from incrowd.cli.screen import round_down
from incrowd.errors import InvalidInput

KINDS = (".html", ".svg", ".png")
MISSING = "A picture needs the packages altair and vl-convert-python: pip install 'incrowd[plot]'."
COLOURS = {"consistent": "#4c9a6a", "caught": "#8fb3d9", "ACCUSED": "#c0392b", "ESCAPED": "#c0392b"}


def check(file: Path) -> None:
    """Refuse a picture that could not be saved, before anything is run."""
    if file.suffix.lower() not in KINDS:
        raise InvalidInput(f"The picture {file} must end in {', '.join(KINDS[:-1])} or {KINDS[-1]}.")
    if not file.absolute().parent.is_dir():
        raise InvalidInput(f"There is no folder {file.parent} for the picture: make it first.")
    try:
        import altair  # noqa: F401
        import vl_convert  # noqa: F401
    except ImportError:
        raise InvalidInput(MISSING) from None


def save(charts: Sequence[Any], file: Path) -> None:
    """One picture of all charts, one below the other. A page needs nothing from the network."""
    import altair as alt

    drawn = charts[0] if len(charts) == 1 else alt.vconcat(*charts).resolve_scale(color="independent")
    if file.suffix.lower() == ".html":
        drawn.save(str(file), inline=True)
    else:
        drawn.save(str(file), scale_factor=2 if file.suffix.lower() == ".png" else 1)


def audit_chart(result: Audit) -> Any:
    """How often the event happened on either side, and how often the claim lets it happen at most."""
    import altair as alt

    tested = result.tested
    rates = [Rate(hits, tested.runs, result.confidence) for hits in tested.hits]
    rare = rates[1] if tested.likelier == "x" else rates[0]
    most = min(1.0, math.exp(min(result.epsilon, 700.0)) * rare.high + result.delta)
    rows = [
        {
            "data": name,
            "share": rate.value,
            "low": rate.low,
            "high": rate.high,
            "allowed": most if name == tested.likelier else None,
        }
        for name, rate in zip(("x", "x'"), rates, strict=True)
    ]
    base = alt.Chart(alt.InlineData(values=rows))
    side = alt.Y("data:N", sort=["x", "x'"], title=None)
    # Each layer would add its own name to the title of the axis.
    length = alt.X("share:Q", title="share of runs in which it happened", axis=alt.Axis(format="~%"))
    bars = base.mark_bar(color="#8fb3d9", height=22).encode(y=side, x=length)
    ends = base.mark_rule(color="#1f4e79", strokeWidth=2).encode(
        y=side, x=alt.X("low:Q", title=""), x2="high:Q"
    )
    limit = (
        base.transform_filter("datum.allowed !== null")
        .mark_tick(color="#c0392b", thickness=3, height=32)
        .encode(y=side, x=alt.X("allowed:Q", title=""))
    )
    title = alt.Title(
        f"{result.verdict}: epsilon is at least {round_down(result.bound, 4):g}, "
        f"claimed is {result.epsilon:g}",
        subtitle=[
            *textwrap.wrap(f"event: {result.event}", 90),
            "red: the most that the claim allows, given the other bar",
        ],
    )
    return alt.layer(bars, ends, limit).properties(title=title, width=460, height=90)


def table_chart(lines: Sequence[Line]) -> Any:
    """The bound of each audit as a share of its claim: mutants are caught beyond it."""
    import altair as alt

    panels = []
    for kind in dict.fromkeys(line.kind for line in lines):
        rows = [
            # Bars end at three times the claim; some mutants have no epsilon at all.
            {
                "name": line.name,
                "closeness": min(line.audit.closeness, 3.0),
                "outcome": line.word,
            }
            for line in lines
            if line.kind == kind
        ]
        base = alt.Chart(alt.InlineData(values=rows))
        side = alt.Y("name:N", sort=None, title=None, axis=alt.Axis(labelLimit=320))
        length = alt.X(
            "closeness:Q",
            title="bound / claim (cut at 3)",
            scale=alt.Scale(domain=[0, 3]),
        )
        colour = alt.Color(
            "outcome:N",
            title=None,
            scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())),
            legend=None,
        )
        bars = base.mark_bar(height=9).encode(y=side, x=length, color=colour)
        limit = (
            alt.Chart(alt.InlineData(values=[{"claim": 1}]))
            .mark_rule(color="#c0392b", strokeWidth=2)
            .encode(x=alt.X("claim:Q", title=""))
        )
        panels.append(alt.layer(bars, limit).properties(title=f"{kind}s", width=460))
    return panels[0] if len(panels) == 1 else alt.vconcat(*panels)
