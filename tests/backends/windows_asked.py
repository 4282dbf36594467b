"""Windows over one person's rows, as they are asked: functions, orders and frames over columns of visits."""

from __future__ import annotations

_OVER = "OVER (PARTITION BY user_id ORDER BY {by})"
NUMBERS = (
    *(f"ROW_NUMBER() {_OVER.format(by=by)}" for by in ("ts", "f DESC", "t, x", "b NULLS FIRST, grp DESC")),
    "ROW_NUMBER() OVER (PARTITION BY user_id)",
    "RANK() OVER (PARTITION BY user_id ORDER BY f)",
    "DENSE_RANK() OVER (PARTITION BY user_id ORDER BY d DESC NULLS FIRST)",
    "RANK() OVER (PARTITION BY user_id, f ORDER BY x % 3)",
    "NTILE(4) OVER (PARTITION BY user_id ORDER BY p)",
    "LAG(x) OVER (PARTITION BY user_id ORDER BY ts)",
    "LEAD(f, 2) OVER (PARTITION BY user_id ORDER BY d)",
    "LAG(n, 1, 0) OVER (PARTITION BY user_id ORDER BY f)",
    "LEAD(f, 0, 1.5) OVER (PARTITION BY user_id ORDER BY t)",
    "x - LAG(x) OVER (PARTITION BY user_id ORDER BY ts)",
    "FIRST_VALUE(f) OVER (PARTITION BY user_id ORDER BY f)",
    "FIRST_VALUE(p) OVER (PARTITION BY user_id ORDER BY t ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING)",
    "LAST_VALUE(x) OVER (PARTITION BY user_id ORDER BY ts ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING)",
    "LAST_VALUE(f) OVER (PARTITION BY user_id)",
    "NTH_VALUE(x, 2) OVER (PARTITION BY user_id ORDER BY ts ROWS BETWEEN 9 PRECEDING AND 9 FOLLOWING)",
    "COUNT(*) OVER (PARTITION BY user_id)",
    "COUNT(f) OVER (PARTITION BY user_id ORDER BY f)",
    "COUNT(*) FILTER (WHERE b) OVER (PARTITION BY user_id ORDER BY x ROWS UNBOUNDED PRECEDING)",
    "COUNT_IF(b) OVER (PARTITION BY user_id ORDER BY d RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
    "MIN(f) OVER (PARTITION BY user_id ORDER BY ts ROWS BETWEEN 3 PRECEDING AND CURRENT ROW)",
    "MAX(f) OVER (PARTITION BY user_id ORDER BY t DESC)",
    "MAX(x) OVER (PARTITION BY user_id, cat ORDER BY f ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING)",
    "LENGTH(LAG(t) OVER (PARTITION BY user_id ORDER BY x))",
    "LENGTH(MIN(t) OVER (PARTITION BY user_id ORDER BY x DESC))",
    "CASE WHEN LAG(b) OVER (PARTITION BY user_id ORDER BY x) THEN 1 ELSE 2 END",
    "CASE WHEN MAX(b) OVER (PARTITION BY user_id ORDER BY x) THEN 1 ELSE 2 END",
    "YEAR(LEAD(d) OVER (PARTITION BY user_id ORDER BY ts))",
    "DATE_DIFF('day', LAG(d) OVER (PARTITION BY user_id ORDER BY d), d)",
)
KEYS = (
    "LAG(grp) OVER (PARTITION BY user_id ORDER BY t)",
    "FIRST_VALUE(t) OVER (PARTITION BY user_id ORDER BY t DESC NULLS FIRST)",
    "LAST_VALUE(ts) OVER (PARTITION BY user_id ORDER BY f ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
    "LAG(cat) OVER (PARTITION BY user_id ORDER BY grp)",
)


def asked(windows: tuple[str, ...], bounds: str) -> str:
    """A question that sums windows."""
    inner = ", ".join(f"{window} AS w{place}" for place, window in enumerate(windows))
    sums = ", ".join(f"SUM(w{place}, {bounds}) AS s{place}" for place in range(len(windows)))
    return f"SELECT {sums} FROM (SELECT user_id, {inner} FROM visits)"


def grouped(window: str) -> str:
    """A question that groups by a window."""
    return f"SELECT k, COUNT(*) AS n FROM (SELECT user_id, {window} AS k FROM visits) GROUP BY k"
