"""The budget of levels: all of it is shared, and no level is worse off than by itself."""

from __future__ import annotations

import pytest

from incrowd.curator.level_shares import level_shares, nested
from incrowd.curator.marginals import variances
from incrowd.query import Leaf
from tests.backends.houses import plan_of

ASKED = ["ROLLUP (cat, b)", "CUBE (cat, b)", "GROUPING SETS ((cat), (b), ())", "ROLLUP (cat)"]


def leaves_of(levels: str) -> tuple[Leaf, ...]:
    return plan_of(f"SELECT COUNT(*) AS n FROM visits GROUP BY {levels}", "user").leaves


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("levels", ASKED)
def test_all_is_shared_and_no_level_is_less_accurate_than_alone(levels: str, gaussian: bool) -> None:
    leaves = leaves_of(levels)
    shares = level_shares(leaves, gaussian)
    kept = [leaf.totals.kept for leaf in leaves if leaf.totals is not None]
    asked = [leaf.read for leaf in leaves]
    assert sum(shares) == 1
    assert [share > 0 for share in shares] == asked
    power = 1 if gaussian else 2
    sizes = [float(len(key.values or ())) for key in leaves[0].keys]
    noise = {level: float(share) ** -power for level, share in zip(kept, shares, strict=True) if share}
    alone = float(len(noise)) ** power
    after = variances(sizes, noise, list(noise))
    assert max(after) <= alone * (1 + 1e-5)
    assert min(after) < 0.9 * alone


def test_private_cubes_measure_their_cells_alone() -> None:
    leaves = leaves_of("CUBE (cat, grp)")
    assert [float(share) for share in level_shares(leaves, False)] == [1.0, 0.0, 0.0, 0.0]
    assert min(level_shares(leaves_of("ROLLUP (cat, grp)"), False)) > 0


def test_levels_are_nested_where_each_adds_up_the_one_before() -> None:
    assert nested([(0, 1), (), (0,)])
    assert not nested([(0, 1), (0,), (1,)])


def test_many_levels_share_alike() -> None:
    shares = level_shares(leaves_of("CUBE (cat, b, x, city)"), False)
    assert set(shares) <= {shares[0], 0}
    assert sum(shares) == 1
