"""Expressions about times over the table of `one_table`, each with what plain DuckDB says on rows inside the
calendar (the expression itself, if nothing else is given).
"""

from __future__ import annotations

SHIFTS: dict[str, str] = {
    "d + 7": "",
    "7 + d": "",
    "d - 365": "",
    "d + y": "d + y::INTEGER",
    "d - x": "d - x::INTEGER",
    "d - d": "",
    "d - DATE '2020-02-29'": "",
    "CAST(m AS DATE) - d": "",
    "d + INTERVAL '30' DAY": "",
    "d - INTERVAL 30 DAYS": "",
    "m + INTERVAL '1 month'": "",
    "m - INTERVAL '1 month'": "",
    "INTERVAL 1 QUARTER + d": "",
    "m + INTERVAL '1 year 2 months 3 days'": "",
    "m - INTERVAL '13 months 40 days 25 hours'": "",
    "m + INTERVAL 90 MINUTE": "",
    "m - INTERVAL '1 microsecond'": "",
    "m + 3 * INTERVAL '2 hours'": "",
    "m + TO_WEEKS(2)": "",
    "d + INTERVAL (y) DAY": "",
    "d - INTERVAL (y) WEEK": "",
    "DATE_ADD(d, INTERVAL 1 DECADE)": "",
    "d + INTERVAL 100 CENTURIES": "NULL::TIMESTAMP",
    "m - INTERVAL '1 month' + INTERVAL '1 month'": "",
    "CAST(m + INTERVAL '2 hours' AS DATE)": "",
    "DATE_TRUNC('month', CAST(m AS DATE))": "CAST(DATE_TRUNC('month', m) AS DATE)",
    "DATE_TRUNC('week', d + 1)": "CAST(DATE_TRUNC('week', d + 1) AS DATE)",
    "CAST(DATE_TRUNC('year', DATE_TRUNC('week', m)) AS DATE)": "",
    "DATE_TRUNC('second', m)": "",
    "DATE_TRUNC('quarter', m + INTERVAL '5 days')": "",
    "YEAR(DATE_TRUNC('month', CAST(m AS DATE)) - 1)": "YEAR(CAST(DATE_TRUNC('month', m) AS DATE) - 1)",
    "d + INTERVAL 1 DAY > m": "",
    "LEAST(d + 30, DATE '2024-06-01')": "",
}
