"""CSV by its rules: records are those of a reader that goes letter by letter; anything else is refused."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from incrowd.backends.strict_csv import BLOCK, Malformed, Records, batches, read_header
from incrowd.errors import CatalogError

PARTS = ['"', '""', ",", "\n", "\r", "\r\n", "a", "é", "x,y\n", '"q","r"\n', '1,"two\r\nlines"\r', "\x00"]
BODIES = st.lists(st.sampled_from(PARTS), max_size=14).map("".join)


def by_hand(body: str) -> list[list[str | None]] | None:
    """The records of two fields, one character at a time; None where a rule is broken."""
    records: list[list[str]] = []
    record: list[str] = []
    field, state = "", "start"
    for char in [*body, "END"]:
        if state == "quoted" and char != '"':
            if char == "END":
                return None
            field += char
        elif char == '"':
            if state == "plain":
                return None
            field += '"' if state == "closed" else ""
            state = "closed" if state == "quoted" else "quoted"
        elif char in (",", "\n", "\r", "END"):
            if char == "," or record or state != "start":
                record.append(field)
            field = ""
            if char == ",":
                state = "field"
                continue
            if record:
                records.append(record)
            record, state = [], "start"
        elif state == "closed":
            return None
        else:
            field, state = field + char, "plain"
    if any(len(fields) != 2 for fields in records):
        return None
    return [[value or None for value in one] for one in records]


def read(path: Path, block: int = BLOCK) -> list[list[str | None]]:
    header = read_header(str(path), "t")
    stream = batches(str(path), header, "t", block)
    return [list(row.values()) for batch in stream for row in batch.to_pylist()]


@settings(max_examples=400)
@given(BODIES)
@example('1,"a"b\n')
@example('1,"a\n')
@example("1,2\r\n3,4\n5,6\r7,8")
@example('1,a"b\n')
def test_records_are_those_of_a_reader_that_goes_letter_by_letter(
    tmp_path_factory: pytest.TempPathFactory, body: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "strict.csv"
    path.write_bytes(b"a,b\n" + body.encode())
    expected = by_hand(body)
    if expected is not None:
        assert read(path) == expected
        return
    with pytest.raises(CatalogError, match="not well-formed") as caught:
        read(path)
    assert caught.value.__cause__ is None and caught.value.__context__ is None


@settings(max_examples=300)
@given(BODIES, st.integers(1, 9))
@example('1,"a\r\nb"\r\n', 6)
@example('1,"a\x00"\n2,"""\n"\n', 5)
@example("1,2\r\n", 8)
def test_the_same_records_come_in_blocks_of_any_size(
    tmp_path_factory: pytest.TempPathFactory, body: str, block: int
) -> None:
    """A block's border inside somebody's text would be decided by the rows before it."""
    path = tmp_path_factory.getbasetemp() / "blocks.csv"
    path.write_bytes(b"a,b\n" + body.encode())
    expected = by_hand(body)
    if expected is not None:
        assert read(path, block) == expected
        return
    with pytest.raises(CatalogError, match="not well-formed"):
        read(path, block)


@given(BODIES, st.integers(1, 5))
def test_blocks_are_the_bytes_and_end_with_records(body: str, size: int) -> None:
    try:
        blocks = list(Records(io.BytesIO(body.encode()), ",", size))
    except Malformed:
        with pytest.raises(Malformed):
            list(Records(io.BytesIO(body.encode()), ","))
        return
    assert b"".join(blocks) == body.encode()
    assert all(block.count(b'"') % 2 == 0 for block in blocks)
    assert all(block[-1:] in (b"\r", b"\n") for block in blocks[:-1])


@pytest.mark.parametrize("border", [8_000_000, BLOCK])
def test_a_quoted_field_across_a_border_of_blocks_is_one_field(tmp_path: Path, border: int) -> None:
    """A reader that starts in the middle takes one person's text for other people's rows."""
    path = tmp_path / "a.csv"
    hostile = '1,"' + "\n666,x\n" * 3000 + '"\n'
    line = b"2,ordinary\n"
    before = line * ((border - 10_000) // len(line))
    path.write_bytes(b"a,b\n" + before + hostile.encode() + line * 2000)
    header = read_header(str(path), "t")
    columns = [batch.column(0).to_pylist() for batch in batches(str(path), header, "t")]
    ids = [value for column in columns for value in column]
    assert ids.count("1") == 1 and ids.count("666") == 0 and ids.count("2") == before.count(b"\n") + 2000


def test_a_record_may_be_longer_than_a_block(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"a,b\n1,2\n3," + b"x" * (2 * BLOCK) + b'\n5,"' + b"y\r\n" * BLOCK + b'"\n7,8')
    assert [(row[0], len(row[1] or "")) for row in read(path)] == [
        ("1", 1),
        ("3", 2 * BLOCK),
        ("5", 3 * BLOCK),
        ("7", 1),
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"a,b\n1,\xff\n", "not UTF-8"),
        (b"a,b\n1,2\n3\n", "more or fewer fields"),
        (b"a,b\n1,2,3\n", "more or fewer fields"),
        (b'a,b\n1,"2\n', "never closed"),
        (b'a,b\n1,"2"3\n', "behind a closing quote"),
        (b'a,b\n1,2"3\n', "inside a field"),
    ],
)
def test_what_is_not_well_formed_is_refused_by_its_rule_and_without_its_row(
    tmp_path: Path, content: bytes, said: str
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    with pytest.raises(CatalogError, match=said) as caught:
        read(path)
    assert "3" not in str(caught.value)


@pytest.mark.parametrize(
    ("first", "names"),
    [
        (b"a,b\r", ("a", "b")),
        (b'\xef\xbb\xbf"a;x";b|c\n', ("a;x", "b|c")),
        (b'"two\nlines",b\n', ("two\nlines", "b")),
        (b"only", ("only",)),
    ],
)
def test_the_first_line_names_columns_and_delimiter(
    tmp_path: Path, first: bytes, names: tuple[str, ...]
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(first)
    assert read_header(str(path), "t").names == names
    assert read(path) == []


def test_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 10_000)[:-20])
    with pytest.raises(CatalogError, match="cannot be read") as caught:
        read(path)
    assert caught.value.__cause__ is None and caught.value.__context__ is None
