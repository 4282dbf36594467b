"""CSV, read strictly and record by record: nothing about how a file is read depends on what a row holds.

The first line alone says the column names and the delimiter. Every column is text; an empty field is NULL.
What counts as a record:

- A field in double quotes may hold anything, line breaks too; a quote inside it is doubled.
- A field without quotes holds no quote.
- A record ends at LF, CRLF or CR, in any mixture. Empty lines are passed over.
- Every record has as many fields as the first line, and the text is UTF-8.

A file that breaks one of these rules is refused as a whole. To go on would be a guess, and a wrong guess
turns one person's text into other people's rows: a quote that is never closed swallows what stands behind it.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.csv

from incrowd.errors import CatalogError
from incrowd.query.typed import fold

_DELIMITERS = b",;\t|"
_QUOTE = ord('"')
_BOM = b"\xef\xbb\xbf"
_LONGEST_HEADER = 1_000_000
_TOO_LONG = "too long"
BLOCKS = (16 << 20, 256 << 20, (2 << 30) - 1)
"""Sizes of what is parsed at once. A record must fit into one: where it does not, try the next size."""


class Malformed(Exception):  # noqa: N818
    """The file breaks a rule of the format; says which, and holds nothing of the file."""


class TooLong(Exception):  # noqa: N818
    """A record does not fit into a block."""


@dataclass(frozen=True)
class Header:
    """What the first line says, and where the records begin."""

    names: tuple[str, ...]
    delimiter: str
    start: int


class Checked(io.RawIOBase):
    """Bytes behind the first line, passed on while every quote among them is where one may be.

    Quotes open and close in turns. One that opens must follow a delimiter, a line end or the quote that
    closed just before (a doubled quote); one that closes must be followed by a delimiter, a line end, a
    quote or the end of the file.
    """

    def __init__(self, stream: BinaryIO, delimiter: str, first: bytes = b"") -> None:
        super().__init__()
        self._stream = stream
        self._first = first
        self._border = np.zeros(256, dtype=bool)
        self._border[[ord(delimiter), ord("\n"), ord("\r"), _QUOTE]] = True
        self._inside = False
        self._last = ord("\n")

    def readable(self) -> bool:
        """Always."""
        return True

    def read(self, size: int = -1) -> bytes:
        """The next bytes. Malformed where a quote is at a wrong place."""
        chunk = self._stream.read(size - len(self._first) if size >= 0 else size)
        if chunk:
            self._check(chunk)
        elif self._inside:
            raise Malformed("a quoted field is never closed")
        first, self._first = self._first, b""
        return first + chunk

    def _check(self, chunk: bytes) -> None:
        closed = self._last == _QUOTE and not self._inside
        if closed and not self._border[chunk[0]]:
            raise Malformed("text stands behind a closing quote")
        if b'"' in chunk:
            held = np.frombuffer(chunk, dtype=np.uint8)
            places = np.flatnonzero(held == _QUOTE)
            first = int(self._inside)
            opening, closing = places[first::2], places[1 - first :: 2]
            before = held[opening - 1]
            if opening.size and opening[0] == 0:
                before[0] = self._last
            if not self._border[before].all():
                raise Malformed("a quote stands inside a field that is not quoted")
            after = closing[closing + 1 < held.size] + 1
            if not self._border[held[after]].all():
                raise Malformed("text stands behind a closing quote")
            self._inside ^= bool(places.size % 2)
        self._last = chunk[-1]


def read_header(path: str, table: str) -> Header:
    """The names of the columns and the delimiter, from the first line alone."""
    with _opened(path, table) as stream:
        content = stream.read(_LONGEST_HEADER)
    marked = len(_BOM) if content.startswith(_BOM) else 0
    line = _first_record(content[marked:])
    plain = b"".join(line.split(b'"')[::2])
    delimiter = max(_DELIMITERS, key=plain.count)
    try:
        names = next(csv.reader([line.decode("utf-8")], delimiter=chr(delimiter), strict=True), [])
    except (csv.Error, UnicodeDecodeError):
        names = []
    if not names or any(not each for each in names) or len({fold(each) for each in names}) < len(names):
        raise CatalogError(
            f"tables.{table}: the first line of {Path(path).name} must name the columns, each by a name "
            "of its own."
        )
    return Header(tuple(names), chr(delimiter), marked + len(line))


def _first_record(content: bytes) -> bytes:
    """Up to the first line end that is not inside quotes."""
    inside = False
    for place, byte in enumerate(content):
        if byte == _QUOTE:
            inside = not inside
        elif byte in b"\r\n" and not inside:
            return content[:place]
    return content


@contextmanager
def _opened(path: str, table: str) -> Iterator[BinaryIO]:
    """A file's bytes, unpacked. A CatalogError that holds nothing of the file where they cannot be read."""
    failure = ""
    try:
        with gzip.open(path) if path.endswith(".gz") else Path(path).open("rb") as stream:
            yield stream  # type: ignore[misc]
    except (OSError, EOFError, zlib.error) as error:
        failure = type(error).__name__
    if failure:
        raise CatalogError(f"tables.{table}: {Path(path).name} cannot be read ({failure}).")


def batches(path: str, header: Header, table: str, block: int) -> Iterator[pa.RecordBatch]:
    """The records of a file as columns of text.

    TooLong where a record does not fit into a block; CatalogError where the file is not well-formed.
    """
    said = ""
    try:
        with _opened(path, table) as stream:
            yield from _parsed(stream, header, block)
    except Malformed as error:
        said = str(error)
    except pa.ArrowInvalid as error:
        if "straddling" in str(error) and block < BLOCKS[-1]:
            said = _TOO_LONG
        else:
            said = "a line has more or fewer fields than the first"
    if said == _TOO_LONG:
        raise TooLong
    if said:
        raise CatalogError(
            f"tables.{table}: {Path(path).name} is not well-formed CSV ({said}); mend it, since to guess "
            "would mix up the rows of different people."
        )


def _parsed(stream: BinaryIO, header: Header, block: int) -> Iterator[pa.RecordBatch]:
    stream.read(header.start)
    numbers = [str(place) for place in range(len(header.names))]
    reader = pa.csv.open_csv(
        # Under a first line of our own: without any, a file that has no records would be an error.
        Checked(stream, header.delimiter, f"{header.delimiter.join(numbers)}\n".encode()),
        pa.csv.ReadOptions(block_size=block),
        pa.csv.ParseOptions(delimiter=header.delimiter, newlines_in_values=True),
        pa.csv.ConvertOptions(
            column_types=dict.fromkeys(numbers, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            check_utf8=False,
        ),
    )
    for batch in reader:
        try:
            batch.validate(full=True)
        except pa.ArrowInvalid:
            raise Malformed("its text is not UTF-8") from None
        yield batch.rename_columns(header.names)
