"""Spark against the hostile neighbour."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hostile.attack import attack, wanted
from tests.hostile.known_spark import SPARK_ATTACKS
from tests.hostile.neighbour import Tally
from tests.hostile.spark_stores import spark_stores


def test_no_row_decides_anything_but_a_number(counted: Callable[[Tally], None]) -> None:
    counted(attack(Tally("Spark"), [spark_stores], wanted(quick=2, full=110), per_case=4, whole=0.05))


@pytest.mark.parametrize("attack", SPARK_ATTACKS, ids=lambda function: function.__name__)
def test_a_known_attack_fails(attack: Callable[[Path], None], tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    attack(tmp_path)
