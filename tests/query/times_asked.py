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
DIFFERENCES: dict[str, str] = {
    **{
        f"DATE_DIFF('{unit}', {one}, {two})": ""
        for unit in ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
        for one, two in (("d", "m"), ("m", "d"))
    },
    "DATE_DIFF('decade', m, DATE '2024-05-06')": "",
    "DATE_DIFF('century', DATE '2024-05-06', d)": "",
    "DATEDIFF('millennium', d, TIMESTAMP '2024-05-06 07:08:09')": "",
    "DATEDIFF('milliseconds', m, d)": "",
    "DATE_DIFF('microsecond', d, m)": "",
    "DATE_DIFF('hour', d, CAST(m AS DATE))": "",
    "DATE_DIFF('week', d, DATE '2024-01-01')": "",
    "DATE_SUB('day', d, m)": "",
    "DATE_SUB('hour', m, d)": "",
    "DATESUB('week', m, d)": "",
    "EXTRACT(YEAR FROM AGE(m, d))": "",
    "EXTRACT(YEAR FROM AGE(DATE '2024-02-29', d))": "EXTRACT(YEAR FROM AGE(DATE '2024-02-29', d::TIMESTAMP))",
    "EXTRACT(MONTH FROM AGE(d, m))": "",
    "YEAR(AGE(m, TIMESTAMP '1999-12-31 12:00:00'))": "",
    "EXTRACT(EPOCH FROM m - d)": "DATE_DIFF('microsecond', d, m) / 1e6",
    "EXTRACT(EPOCH FROM m - DATE '2000-01-01')": "DATE_DIFF('microsecond', DATE '2000-01-01', m) / 1e6",
    "EXTRACT(EPOCH FROM (CAST(m AS DATE) - d))": "(CAST(m AS DATE) - d) * 86400",
    "EPOCH(d - m)": "DATE_DIFF('microsecond', m, d) / 1e6",
    "DATE_PART('day', m - d)": "",
    "EXTRACT(HOUR FROM (d - m))": "",
    "EXTRACT(MINUTE FROM m - d)": "",
    "EXTRACT(SECOND FROM d - m)": "",
    "m - d > INTERVAL '3 days'": "",
    "INTERVAL '1 month' >= (m - d)": "",
    "m - d = INTERVAL 0 SECOND": "",
    "m - TIMESTAMP '2020-12-31 12:30:15.5' BETWEEN INTERVAL '-1 day' AND INTERVAL '20 years'": "",
    "YEAR(d - 7)": "",
    "EXTRACT(MONTH FROM m - INTERVAL '1 month')": "",
}
FORMATS: dict[str, str] = {
    "DAYNAME(d)": "",
    "DAYNAME(m)": "",
    "MONTHNAME(d)": "",
    "STRFTIME(m, '%Y-%m')": "",
    "STRFTIME('%Y-%m-%d %H:%M:%S', m)": "STRFTIME(m, '%Y-%m-%d %H:%M:%S')",
    "STRFTIME(d, '%A %a %B %b 100%% %-d/%-m')": "",
    "STRFTIME(d, '%G-W%V-%u %j %w')": "",
    "STRFTIME(d, '%F %T')": "STRFTIME(d, '%Y-%m-%d %H:%M:%S')",
    "STRFTIME(d, '%y')": "",
    "LAST_DAY(d)": "",
    "LAST_DAY(m)": "",
}
PARTS: dict[str, str] = {
    **{
        f"EXTRACT({part} FROM {column})": ""
        for part in ("DOY", "ISODOW", "ISOYEAR", "YEARWEEK", "DECADE", "CENTURY", "MILLENNIUM", "EPOCH")
        for column in ("d", "m")
    },
    "DAYOFYEAR(d)": "",
    "ISODOW(m)": "",
    "ISOYEAR(d)": "",
    "YEARWEEK(m)": "",
    "WEEKOFYEAR(d)": "",
    "DATE_PART('isoyear', d)": "",
    "DATE_PART('epoch', m)": "",
    "EPOCH(m)": "",
    "EXTRACT(years FROM m)": "",
    "EXTRACT(ISODOW FROM d + 1)": "",
}
