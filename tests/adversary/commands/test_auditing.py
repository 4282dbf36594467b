"""What is audited from the command line: found, rehearsed, counted, and refused in the user's words."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from incrowd.adversary.audit.runs import Single
from incrowd.adversary.commands.auditing import Plan, Subject, command_subject, function_subject, parsed
from incrowd.errors import InvalidInput

MODULE = """\
from incrowd.mechanisms import Laplace

noise = Laplace(1.0)

def blind(data):
    print("a remark")
    return 0

def plain(data):
    return sum(data)

def fails(data):
    raise KeyError("no")

def many(data, runs):
    return [len(data)] * runs

def few(data, runs):
    raise ZeroDivisionError

number = 3
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """A module in the folder of work that nothing else has imported."""
    name = f"audited_{abs(hash(request.node.nodeid))}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if folder])
    return name


def plan(subject: Subject, samples: int = 400) -> Plan:
    return Plan(subject, 1.0, 0.0, samples, 0.999, [1, 2], [1])


def test_a_function_of_this_folder_is_found_and_every_run_counted(module: str) -> None:
    told: list[tuple[int, int]] = []
    subject = function_subject(f"{module}:plain", batch=False)
    result = plan(subject).run(lambda done, total: told.append((done, total)))
    assert result.verdict == "violates" and told[-1] == (800, 800)


def test_a_search_tries_pairs_and_tells_the_best(module: str) -> None:
    subject = function_subject(f"{module}:many", batch=True)
    wanted = Plan(subject, 1.0, 0.0, 400, 0.999, [1], values=(0, 5))
    result = wanted.run()
    assert result.verdict == "violates" and len(result.pair[1]) - len(result.pair[0]) in (1, -1)


def test_what_a_mechanism_prints_stays_out_of_the_answer(
    module: str, capsys: pytest.CaptureFixture[str]
) -> None:
    result = plan(function_subject(f"{module}:blind", batch=False), 40).run()
    assert result.verdict == "consistent" and result.bound == 0.0
    said = capsys.readouterr()
    assert said.out == "" and "a remark" in said.err


def test_what_always_fails_is_refused_and_what_fails_on_one_side_is_a_violation(module: str) -> None:
    with pytest.raises(InvalidInput, match=r"fails on x and on x' alike \(KeyError\)"):
        plan(function_subject(f"{module}:fails", batch=False)).run()

    def picky(data: list[int]) -> int:
        return 1 // (2 - len(data))

    assert plan(Subject("picky", Single(picky), False, 40)).run().verdict == "violates"


def test_a_batch_that_fails_is_told_as_such(module: str) -> None:
    with pytest.raises(InvalidInput, match=r"few failed \(ZeroDivisionError\) when asked for 200 outputs"):
        plan(function_subject(f"{module}:few", batch=True)).run()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nothing", "write it as package.module:function"),
        ("no_such_module:f", r"ModuleNotFoundError"),
        ("{}:g", "AttributeError"),
    ],
)
def test_what_is_no_function_is_refused(module: str, name: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        function_subject(name.format(module), batch=False)


def test_a_number_is_no_function(module: str) -> None:
    with pytest.raises(InvalidInput, match="must be a callable"):
        function_subject(f"{module}:number", batch=False)
    with pytest.raises(InvalidInput, match="is no function"):
        function_subject(f"{module}:number", batch=True)


def test_a_mechanism_with_a_release_is_run_by_it(module: str) -> None:
    assert len(function_subject(f"{module}:noise", batch=False).runner(7, 3)) == 3


@pytest.mark.parametrize("line", ["", "  ", "echo 'open"])
def test_what_is_no_command_line_is_refused(line: str) -> None:
    with pytest.raises(InvalidInput, match="is no command line"):
        command_subject(line, batch=False, workers=None, seconds=1.0)


def test_data_is_json_or_a_file_of_it(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"a": [1, 2]}')
    assert parsed("--x", f"@{tmp_path / 'x.json'}") == {"a": [1, 2]}
    assert parsed("--x", "[1, null]") == [1, None]
    (tmp_path / "y.json").write_bytes(b"\xff\xfe")
    for text in ("[1,", f"@{tmp_path / 'y.json'}"):
        with pytest.raises(InvalidInput, match="--x must be JSON"):
            parsed("--x", text)


def test_a_search_without_neighbours_is_refused(module: str) -> None:
    subject = function_subject(f"{module}:plain", batch=False)
    with pytest.raises(InvalidInput, match="--x has no neighbour with these --values"):
        Plan(subject, 1.0, 0.0, 400, 0.999, [], values=(1,), relation="replace").run()
