"""What an unknown function was meant to be: another tool's name for one that is known, or a misspelling."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

AGGREGATES = (
    *("AVG", "CORR", "COUNT", "COUNT_IF", "COVAR_POP", "COVAR_SAMP", "MAX", "MEDIAN", "MIN", "QUANTILE_CONT"),
    *("QUANTILE_DISC", "STDDEV_POP", "STDDEV_SAMP", "SUM", "VAR_POP", "VAR_SAMP"),
)
ELSEWHERE = {
    "AVERAGE": "AVG",
    "AVERAGEIF": "AVG(x) FILTER (WHERE ...)",
    "COUNTA": "COUNT",
    "COUNTD": "COUNT(DISTINCT x)",
    "COUNTIFS": "COUNT_IF",
    "COUNTUNIQUE": "COUNT(DISTINCT x)",
    "DCOUNT": "COUNT(DISTINCT x)",
    "NUNIQUE": "COUNT(DISTINCT x)",
    "PERCENTILE": "QUANTILE_CONT",
    "STDDEVP": "STDDEV_POP",
    "STDEVP": "STDDEV_POP",
    "STDEVS": "STDDEV_SAMP",
    "SUMIF": "SUM(x) FILTER (WHERE ...)",
    "TOTAL": "SUM",
    "VARP": "VAR_POP",
    "VARS": "VAR_SAMP",
}
"""Aggregates by names that neither DuckDB nor its parser knows, with what to write."""


def meant(name: str, known: Iterable[str]) -> str:
    """What a name was meant to be, from these functions and the aggregates; empty if nothing is near.

    >>> meant("AVERAGE", ()), meant("VAR_SAPM", ()), meant("substing", ["SUBSTRING"]), meant("FOO", ["LEFT"])
    ('AVG', 'VAR_SAMP', 'SUBSTRING', '')
    """
    asked = name.upper()
    if asked in ELSEWHERE:
        return ELSEWHERE[asked]
    near = difflib.get_close_matches(asked, [*known, *AGGREGATES], n=1, cutoff=0.8)
    return near[0] if near else ""


def unknown_aggregate(name: str) -> str:
    """The sentence for an aggregate that has another name here; empty for every other name."""
    other = ELSEWHERE.get(name.upper())
    return f"There is no function {name.upper()} here; did you mean {other}?" if other else ""
