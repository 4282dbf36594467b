"""SQL within limits: what exceeds them is ended, and the next question is answered."""

from __future__ import annotations

import os

import pyarrow as pa
import pytest

from incrowd.curator.sandbox import ExhaustedError, Sandbox, SandboxError, sandbox

TABLE = pa.table({"n": [1, 2, None], "s": ["a", "ü", None]})


@pytest.fixture(scope="module")
def small():
    made = Sandbox(memory=256 << 20, seconds=5)
    yield made
    made.close()


def test_tables_go_in_and_come_out(small: Sandbox) -> None:
    result = small.run(
        "SELECT t.n + u.m AS x, s FROM t, u ORDER BY x", {"t": TABLE, "u": pa.table({"m": [1]})}
    )
    assert result.to_pydict() == {"x": [2, 3, None], "s": ["a", "ü", None]}
    assert small.run("SELECT COUNT(*) AS c FROM t", {"t": TABLE.slice(0, 0)}).to_pydict() == {"c": [0]}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT len(range(3000000000))",
        "SELECT len(list(a.range)) FROM range(100000000) a, range(1000) b",
        "SELECT SUM(hash(a.range * b.range)) FROM range(10000000) a, range(10000000) b",
        "SELECT length(repeat('x', 2000000000) || repeat('y', 2000000000))",
    ],
)
def test_what_takes_too_much_is_ended(sql: str, small: Sandbox) -> None:
    with pytest.raises(SandboxError) as caught:
        small.run(sql, {})
    assert isinstance(caught.value, ExhaustedError)
    assert small.run("SELECT 1 AS one", {}).to_pydict() == {"one": [1]}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "COPY (SELECT 1) TO 'out.csv'",
        "SELECT * FROM TABLE_OF_ANOTHER",
        "SET memory_limit = '100GB'",
        "ATTACH 'x.db'",
        "SELECT CAST('x' AS INTEGER)",
        "SELECT (",
    ],
)
def test_what_is_wrong_is_said_in_one_line(sql: str, small: Sandbox) -> None:
    with pytest.raises(SandboxError) as caught:
        small.run(sql, {"t": TABLE})
    assert not isinstance(caught.value, ExhaustedError)
    assert "\n" not in str(caught.value)


def test_one_question_leaves_nothing_for_the_next(small: Sandbox) -> None:
    small.run("SELECT * FROM t", {"t": TABLE})
    with pytest.raises(SandboxError, match="does not exist"):
        small.run("SELECT * FROM t", {})


def test_a_process_keeps_one_and_a_child_gets_its_own() -> None:
    first = sandbox()
    assert sandbox() is first
    first.run("SELECT 1", {})
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            own = sandbox()
            code = 0 if own is not first and own.run("SELECT 2 AS x", {}).num_rows == 1 else 2
            own.close()
            first.close()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert first.run("SELECT 3 AS x", {}).to_pydict() == {"x": [3]}
