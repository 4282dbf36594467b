"""The bundled table: the Adult census extract, public data for demos, tests and first steps.

`SOURCES.md` beside it says where it comes from and under which licence. This room knows nothing but files.
"""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["adult", "adult_path"]


def adult_path() -> Path:
    """Where the Adult table lies, as a Parquet file.

    >>> adult_path().name
    'adult.parquet'
    """
    with as_file(files(__name__).joinpath("adult.parquet")) as path:
        return path


def adult() -> pa.Table:
    """The Adult table: 48,842 people, 15 columns.

    >>> adult().num_rows
    48842
    """
    import pyarrow.parquet as pq

    return pq.read_table(adult_path())
