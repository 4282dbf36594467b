"""PostgreSQL against the hostile neighbour."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import servers
from tests.hostile.attack import attack, wanted
from tests.hostile.known_postgres import POSTGRES_ATTACKS
from tests.hostile.neighbour import Tally
from tests.hostile.postgres_stores import Database, postgres_stores


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with servers.postgres().database() as url:
        made = Database(url)
        yield made
        made.close()


@pytest.mark.parametrize("part", range(2))
def test_no_row_decides_anything_but_a_number(
    database: Database, part: int, counted: Callable[[Tally], None]
) -> None:
    tally = attack(
        Tally("PostgreSQL"), [postgres_stores(database)], wanted(quick=5, full=260), seed=part * 10_000
    )
    counted(tally)


@pytest.mark.parametrize("attack", POSTGRES_ATTACKS, ids=lambda function: function.__name__)
def test_a_known_attack_fails(
    attack: Callable[[Database, Path], None], database: Database, tmp_path: Path
) -> None:
    attack(database, tmp_path)
