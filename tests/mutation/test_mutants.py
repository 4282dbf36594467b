"""The mutation tester: every fault changes one place of a module, and modules have tests of their own."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from tests.mutation.__main__ import ROOT, mirror_of, modules_in, name_of
from tests.mutation.mutants import mutants

SOURCE = '''
def f(x, y, names):
    """Prose with 1 and True."""
    if x < 1 and not y:
        raise ValueError("one 1")
    low = min(x, -2) if y is None else x + y
    return [name for name in names if name != "a"] or low
'''


def test_every_fault_compiles_and_changes_the_module() -> None:
    plain = ast.dump(ast.parse(SOURCE))
    all_mutants = mutants(SOURCE)
    assert len({ast.dump(mutant.tree) for mutant in all_mutants}) == len(all_mutants)
    for mutant in all_mutants:
        compile(mutant.tree, "module", "exec")
        assert ast.dump(mutant.tree) != plain


def test_every_kind_of_fault_is_made_once_where_it_can_be() -> None:
    faults = [mutant.fault for mutant in mutants(SOURCE)]
    expected = {
        *(
            "Lt becomes LtE",
            "1 becomes 2",
            "and becomes or",
            "not is dropped",
            "never raised",
            "min becomes max",
        ),
        *("minus is dropped", "2 becomes 3", "the other branch", "Is becomes IsNot", "Add becomes Sub"),
        *("the filter is dropped", "NotEq becomes Eq", "or becomes and", "returns None", "low becomes high"),
    }
    assert set(faults) == expected


def test_a_fault_changes_what_a_function_returns() -> None:
    outcomes = {}
    for mutant in mutants("def f(x):\n    return x < 1\n"):
        space: dict[str, Any] = {}
        exec(compile(mutant.tree, "module", "exec"), space)
        outcomes[mutant.fault] = [space["f"](value) for value in (0, 1, 2)]
    assert outcomes == {
        "Lt becomes LtE": [True, True, False],
        "1 becomes 2": [True, True, False],
        "returns None": [None, None, None],
    }


def test_a_module_is_tested_by_the_file_that_mirrors_it() -> None:
    src = ROOT / "src" / "incrowd"
    assert mirror_of(src / "query" / "growth.py") == ROOT / "tests" / "query" / "test_growth.py"
    assert mirror_of(src / "query" / "__init__.py") == ROOT / "tests" / "query" / "test_query.py"
    assert mirror_of(src / "query" / "rules" / "__init__.py") == ROOT / "tests" / "query" / "test_rules.py"
    assert name_of(src / "query" / "rules" / "__init__.py") == "incrowd.query.rules"
    assert name_of(src / "query" / "sql.py") == "incrowd.query.sql"


@pytest.mark.parametrize("room", ["query", "curator", "privacy"])
def test_every_module_has_a_mirror(room: str) -> None:
    for file in modules_in([str(ROOT / "src" / "incrowd" / room)]):
        assert mirror_of(Path(file)).exists(), file
