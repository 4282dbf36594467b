"""Tables as people read them: aligned text, HTML, CSV. Decides nothing."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from incrowd.curator.held import rows_of

MOST_LINES = 20
MOST_ROWS_OF_HTML = 50


def text_of(table: pa.Table) -> str:
    """A table in aligned columns; numbers to the right.

    >>> print(text_of(pa.table({"town": ["Ulm", None], "n": [12, 3]})))
    town   n
    Ulm   12
    NULL   3
    """
    rows = [[shown(value) for value in row] for row in rows_of(table.slice(0, MOST_LINES))]
    widths = [max(len(cell) for cell in column) for column in zip(table.column_names, *rows, strict=True)]
    numeric = [not pa.types.is_string(kind) for kind in table.schema.types]

    def line(cells: Sequence[str]) -> str:
        padded = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(cells, widths, numeric, strict=True)
        )
        return "  ".join(padded).rstrip()

    lines = [line(table.column_names), *(line(row) for row in rows)]
    if table.num_rows > MOST_LINES:
        lines.append(f"... {table.num_rows - MOST_LINES:,} more rows")
    return "\n".join(lines)


def html_of(table: pa.Table, remarks: Sequence[str]) -> str:
    """A table with remarks below it."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in table.column_names)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(shown(value))}</td>" for value in row) + "</tr>"
        for row in rows_of(table.slice(0, MOST_ROWS_OF_HTML))
    )
    hidden = table.num_rows - MOST_ROWS_OF_HTML
    more = f"<p>{hidden:,} more rows</p>" if hidden > 0 else ""
    below = "".join(f"<p><small>{html.escape(remark)}</small></p>" for remark in remarks)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}{below}"


def csv_of(table: pa.Table) -> str:
    """A table as CSV with a header; NULL is an empty field.

    >>> csv_of(pa.table({"town": ["Ulm", None], "n": [12, 3]}))
    'town,n\\r\\nUlm,12\\r\\n,3\\r\\n'
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(table.column_names)
    writer.writerows(rows_of(table))
    return text.getvalue()


def shown(value: Any) -> str:
    """One value: NULL, a float to four digits, or its own text."""
    if value is None:
        return "NULL"
    return f"{value:,.4g}" if isinstance(value, float) else str(value)
