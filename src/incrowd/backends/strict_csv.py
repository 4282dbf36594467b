"""A strict CSV reader: how a file is read never depends on the values in its rows.

Only the first line decides the column names and the delimiter. Every column is text; an empty field is NULL.
The rules for records:

- A field in double quotes may hold anything, also line breaks; a quote inside it is doubled.
- A field without quotes holds no quote.
- A record ends at LF, CRLF or CR, in any mixture. Empty lines are skipped.
- Every record has as many fields as the first line, and the text is UTF-8.

A file that breaks one of these rules is refused as a whole. Reading on would be a guess, and a wrong guess
turns one person's text into other people's rows: a quote that is never closed swallows everything after it.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv

from incrowd.errors import CatalogError
from incrowd.query.typed import fold

Bytes = npt.NDArray[np.uint8]
_DELIMITERS = b",;\t|"
_QUOTE = ord('"')
_LINE_ENDS = (ord("\n"), ord("\r"))
_BOM = b"\xef\xbb\xbf"
_LONGEST_HEADER = 1_000_000
_FAILURES = (OSError, EOFError, zlib.error)
BLOCK = 16 << 20
"""How many bytes are read at once."""
_LONGEST_RECORD = (1 << 31) - (1 << 20)
"""The parser's limit for one block: it uses 32-bit offsets."""


class Malformed(Exception):  # noqa: N818
    """The file breaks a rule of the format. The message names the rule and quotes nothing from the file."""


@dataclass(frozen=True)
class Header:
    """The column names and delimiter in the first line, and the place where it ends."""

    names: tuple[str, ...]
    delimiter: str
    start: int


class Records:
    """The bytes after the first line, in blocks of whole records, with every quote checked.

    Quotes open and close in turn. An opening quote must follow a delimiter, a line end or the quote that
    closed just before (a doubled quote). A closing quote must be followed by a delimiter, a line end, a quote
    or the end of the file. A line end closes a record if the number of quotes before it is even. Blocks are
    cut only there, so that no parser ever starts or stops inside somebody's text.
    """

    def __init__(self, stream: BinaryIO, delimiter: str, block: int = BLOCK) -> None:
        self._stream = stream
        self._block = block
        self._border = np.zeros(256, dtype=bool)
        self._border[[ord(delimiter), *_LINE_ENDS, _QUOTE]] = True
        self._inside = False
        self._last = ord("\n")

    def __iter__(self) -> Iterator[bytes]:
        """The blocks. Raises Malformed if a quote is at a wrong place."""
        held: list[bytes] = []
        while chunk := self._stream.read(self._block):
            end = self._check(chunk)
            if sum(map(len, held)) + len(chunk) > _LONGEST_RECORD:
                raise Malformed("a record is longer than 2 GB")
            if end:
                yield b"".join([*held, chunk[:end]])
                held = []
            held.append(chunk[end:])
        if self._inside:
            raise Malformed("a quoted field is never closed")
        if any(held):
            yield b"".join(held)

    def _check(self, chunk: bytes) -> int:
        """The end of the last record that ends in this chunk; 0 if none does."""
        closed = self._last == _QUOTE and not self._inside
        if closed and not self._border[chunk[0]]:
            raise Malformed("text stands behind a closing quote")
        held = np.frombuffer(chunk, dtype=np.uint8)
        quotes = np.flatnonzero(held == _QUOTE)
        if quotes.size:
            first = int(self._inside)
            opening, closing = quotes[first::2], quotes[1 - first :: 2]
            before = held[opening - 1]
            if opening.size and opening[0] == 0:
                before[0] = self._last
            if not self._border[before].all():
                raise Malformed("a quote stands inside a field that is not quoted")
            after = closing[closing + 1 < held.size] + 1
            if not self._border[held[after]].all():
                raise Malformed("text stands behind a closing quote")
        end = _last_end(held, quotes, self._inside)
        self._inside ^= bool(quotes.size % 2)
        self._last = chunk[-1]
        return end


def _last_end(held: Bytes, quotes: npt.NDArray[np.int64], inside: bool) -> int:
    """The place after the last line end with an even number of quotes before it; 0 if there is none."""
    ends = np.flatnonzero((held == _LINE_ENDS[0]) | (held == _LINE_ENDS[1]))
    outside = ends[(np.searchsorted(quotes, ends) + inside) % 2 == 0]
    return int(outside[-1]) + 1 if outside.size else 0


def read_header(path: str, table: str) -> Header:
    """The names of the columns and the delimiter, from the first line alone."""
    failure = ""
    try:
        with _opened(path) as stream:
            content = stream.read(_LONGEST_HEADER)
    except _FAILURES as error:
        failure = type(error).__name__
    if failure:
        raise _unreadable(path, table, failure)
    marked = len(_BOM) if content.startswith(_BOM) else 0
    line = _first_record(content[marked:])
    plain = b"".join(line.split(b'"')[::2])
    delimiter = max(_DELIMITERS, key=plain.count)
    try:
        names = next(csv.reader([line.decode("utf-8")], delimiter=chr(delimiter), strict=True), [])
    except (csv.Error, UnicodeDecodeError):
        names = []
    if not names or any(not name for name in names) or len({fold(name) for name in names}) < len(names):
        raise CatalogError(
            f"tables.{table}: the first line of {Path(path).name} must name the columns, each by a name "
            "of its own."
        )
    return Header(tuple(names), chr(delimiter), marked + len(line))


def _first_record(content: bytes) -> bytes:
    """The bytes up to the first line end that is not inside quotes."""
    inside = False
    for place, byte in enumerate(content):
        if byte == _QUOTE:
            inside = not inside
        elif byte in b"\r\n" and not inside:
            return content[:place]
    return content


def _opened(path: str) -> BinaryIO:
    """Open a file for reading, decompressed if it is gzipped."""
    return gzip.open(path) if path.endswith(".gz") else Path(path).open("rb")  # type: ignore[return-value]


def _unreadable(path: str, table: str, failure: str) -> CatalogError:
    return CatalogError(f"tables.{table}: {Path(path).name} cannot be read ({failure}).")


def batches(path: str, header: Header, table: str, block: int = BLOCK) -> Iterator[pa.RecordBatch]:
    """The records of a file as columns of text. CatalogError if the file is not well-formed."""
    said = failure = ""
    try:
        with _opened(path) as stream:
            stream.read(header.start)
            for records in Records(stream, header.delimiter, block):
                yield from _parsed(records, header)
    except Malformed as error:
        said = str(error)
    except _FAILURES as error:
        failure = type(error).__name__
    # Raised outside the handlers, so that the first error, which may hold bytes of the file, is not kept.
    if failure:
        raise _unreadable(path, table, failure)
    if said:
        raise CatalogError(
            f"tables.{table}: {Path(path).name} is not well-formed CSV ({said}); mend it, since to guess "
            "would mix up the rows of different people."
        )


def _parsed(records: bytes, header: Header) -> list[pa.RecordBatch]:
    numbers = [str(place) for place in range(len(header.names))]
    # Add a header line of our own: without one, a block of empty lines would be an error.
    content = b"".join([f"{header.delimiter.join(numbers)}\n".encode(), records])
    try:
        table = pa.csv.read_csv(
            pa.BufferReader(content),
            # Parse as one block: when Arrow splits blocks, it loses count of quotes and of line ends in them.
            pa.csv.ReadOptions(block_size=len(content) + 1),
            pa.csv.ParseOptions(delimiter=header.delimiter, newlines_in_values=True),
            pa.csv.ConvertOptions(
                column_types=dict.fromkeys(numbers, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
                check_utf8=False,
            ),
        )
    except pa.ArrowInvalid:
        raise Malformed("a line has more or fewer fields than the first") from None
    try:
        table.validate(full=True)
    except pa.ArrowInvalid:
        raise Malformed("its text is not UTF-8") from None
    return table.rename_columns(header.names).to_batches()  # type: ignore[no-any-return]
