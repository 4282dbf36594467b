"""Caps from a noisy census: sensible whatever the noise does, and one unit moves the census by one."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.curator import contribution as caps
from incrowd.curator.contribution import Situation, Use

CELLS = 47
USES: tuple[Use, ...] = ("total", "rescaled", "sum", "rank")


def cumulative(held: list[int]) -> np.ndarray:
    """Units above 0, 1, 2, 4, ... for a number of units in each cell."""
    cells = np.array(held + [0] * (CELLS - len(held)))
    return np.cumsum(cells[::-1])[::-1].copy()


def cells_of(held: list[int]) -> np.ndarray:
    return np.array(held + [0] * (CELLS - len(held)))


@given(st.lists(st.integers(0, 1_000), min_size=1, max_size=CELLS), st.integers(0, CELLS - 1))
def test_one_unit_moves_the_census_by_one(held: list[int], place: int) -> None:
    more = held + [0] * (CELLS - len(held))
    more[place] += 1
    cells = [counts - np.append(counts[1:], 0) for counts in (cumulative(held), cumulative(more))]
    assert np.abs(cells[0] - cells[1]).sum() == 1


def test_the_census_has_noise_for_as_many_cells_as_one_unit_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[Fraction, int]] = []

    class Noted:
        def __init__(self, epsilon: Fraction, sensitivity: int) -> None:
            made.append((epsilon, sensitivity))

        def release(self, cells: np.ndarray) -> np.ndarray:
            return cells + 1

    monkeypatch.setattr(caps, "Laplace", Noted)
    # 10 units above 0, 7 above 1, 2 above 2: three, five and two in their cells.
    cells, far_units = caps.noisy_census(np.array([10, 7, 2]), Fraction(1, 3), 2)
    assert cells.tolist() == [4, 6, 3] and far_units is None
    assert made == [(Fraction(1, 3), 2)]
    # Far units move a cell and the total of far cells.
    cells, far_units = caps.noisy_census(np.array([10, 7, 2]), Fraction(1, 3), 2, far=1)
    assert cells.tolist() == [4, 6, 3] and far_units == 8
    assert made[1:] == [(Fraction(1, 3), 2), (Fraction(1, 3), 4)]


@pytest.mark.parametrize(("distance", "far"), [(1, 2), (1, 5), (2, 2), (2, 3)])
def test_no_neighbour_changes_the_odds_of_a_census_by_more_than_epsilon(
    monkeypatch: pytest.MonkeyPatch, distance: int, far: int
) -> None:
    """All neighbours of a small census, from the exact law: one step costs one over the scale."""
    scales: list[float] = []

    class Exact:
        def __init__(self, epsilon: Fraction, sensitivity: int) -> None:
            self.scale = sensitivity / float(epsilon)

        def release(self, numbers: np.ndarray) -> np.ndarray:
            scales.extend([self.scale] * len(numbers))
            return numbers

    monkeypatch.setattr(caps, "Laplace", Exact)

    def released(held: list[int]) -> np.ndarray:
        counts = np.cumsum(np.array(held)[::-1])[::-1].copy()
        scales.clear()
        cells, far_units = caps.noisy_census(counts, Fraction(1, 3), distance, far)
        assert far_units is not None
        return np.append(cells, far_units)

    held = [5, 4, 3, 2, 1, 1]
    moves = [(place, 1) for place in range(6)] + [(place, -1) for place in range(6)]
    pairs = itertools.product(moves, repeat=distance)
    losses = []
    for pair in pairs:
        if distance == 2 and pair[0][1] == pair[1][1]:
            continue
        other = held.copy()
        for place, step in pair:
            other[place] += step
        change = np.abs(released(other) - released(held))
        losses.append(float((change / np.array(scales)).sum()))
    assert max(losses) == pytest.approx(1 / 3)


@given(
    st.lists(st.integers(-(10**6), 10**9), min_size=CELLS, max_size=CELLS),
    st.builds(
        Situation,
        use=st.sampled_from(USES),
        epsilon=st.floats(1e-5, 100),
        epsilon_sums=st.floats(1e-5, 100),
        epsilon_totals=st.floats(1e-5, 100),
        groups=st.sampled_from([None, 1, 100, 100_000]),
        row=st.floats(2.0**19 + 1, 2.0**20),
        counts=st.just(False),
        distance=st.sampled_from([1, 2]),
    ),
    st.booleans(),
    st.booleans(),
)
def test_any_census_gives_caps_and_a_number_of_units_beyond(
    cells: list[int], situation: Situation, counts: bool, paired: bool
) -> None:
    if counts:
        situation = replace(situation, row=1.0, counts=True, paired=paired, norm=2 if paired else 1)
    chosen = caps.choose(np.array(cells), situation)
    assert 0 < chosen.cap <= chosen.generous < 2.0**CELLS * 4
    assert chosen.generous <= chosen.cap * 2.0**caps.SPAN
    assert chosen.cut_squares >= 0 and (chosen.cut_squares == 0 or chosen.cap < chosen.generous)
    if counts:
        # The statement floors a number of rows: what is stated must be what is enforced.
        assert chosen.cap >= 1 and chosen.cap.is_integer() and chosen.generous.is_integer()
    assert caps.most_beyond(np.array(cells), chosen.generous, situation, 0.95) >= 0


BASE = Situation("total", epsilon=1.0, epsilon_sums=1.0, epsilon_totals=0.1)


@pytest.mark.parametrize("use", USES)
def test_nobody_gives_the_fallback(use: Use) -> None:
    nothing = cells_of([])
    assert caps.choose(nothing, replace(BASE, use=use)).generous == 4.0
    amounts = replace(BASE, use=use, counts=False, row=1_000_000.0)
    assert caps.choose(nothing, amounts).generous == 1_000_000.0


@pytest.mark.parametrize(
    ("top", "generous"), [(1_000, 8.0), (41, 8.0), (40, 11.0), (13, 11.0), (12, 16.0), (5, 16.0)]
)
def test_headroom_grows_as_the_top_cell_thins_out(top: int, generous: float) -> None:
    chosen = caps.choose(cells_of([0, 0, 10_000, top]), BASE)
    assert chosen.generous == generous == chosen.cap
    amounts = caps.choose(cells_of([0, 0, 10_000, top]), replace(BASE, counts=False))
    assert amounts.generous == pytest.approx(8 * 2**0.5 if generous == 11.0 else generous)


def test_a_total_is_cut_at_its_generous_cap() -> None:
    chosen = caps.choose(cells_of([900, 500, 300, 200, 100]), BASE)
    assert chosen.cap == chosen.generous == 16.0 and chosen.cut_squares == 0.0


def test_more_epsilon_for_the_sums_raises_the_cap() -> None:
    cells = cells_of([1_000, 2_000, 4_000, 8_000, 4_000, 2_000, 1_000])
    for use in ("rescaled", "sum"):
        situation = replace(BASE, use=use, groups=100)
        chosen = [
            caps.choose(cells, replace(situation, epsilon_sums=epsilon)).cap for epsilon in (0.01, 0.1, 1, 10)
        ]
        assert chosen == sorted(chosen) and chosen[0] < chosen[-1] <= 64.0


def least(cells: list[int], situation: Situation, generous: float) -> float:
    """The cap of least error, from the formulas of the docstring, unit by unit."""
    units = [min(0.72 * 2**place, generous) for place, number in enumerate(cells) for _ in range(number)]
    groups = situation.groups or 1
    errors = {}
    for halves in range(2 * caps.SPAN + 1):
        if generous * 2 ** (-halves / 2) < 1:
            break
        cap = float(math.ceil(generous * 2 ** (-halves / 2)))
        shrunk = [min(weight, cap if situation.norm == 1 else (cap * weight) ** 0.5) for weight in units]
        noise = 2**0.5 * (cap if situation.norm == 1 else cap**0.5) / situation.epsilon_sums
        cut = sum(units) - sum(shrunk)
        if situation.use == "rank":
            errors[cap] = (noise * groups / sum(shrunk)) ** 2 + (0.01 * cut / sum(units)) ** 2
        elif halves == 0:
            errors[cap] = noise**2
        elif situation.use == "sum":
            errors[cap] = noise**2 + (cut / groups) ** 2
        else:
            scale = sum(units) / sum(shrunk)
            # One over the epsilon of the census, which is 1, may lose the most and not be seen.
            squares = sum((w - s) ** 2 for w, s in zip(units, shrunk, strict=True)) + (generous - cap) ** 2
            chance = squares / groups
            small, large = caps.totals_shares(cap, generous)
            totals = 2 * (generous / large) ** 2 + 2 * (scale * cap / small) ** 2
            errors[cap] = (
                (noise * scale) ** 2
                + chance
                + (0.25 * cut / groups) ** 2
                + totals / situation.epsilon_totals**2 / groups**2
            )
            if scale > 3:
                errors[cap] = math.inf
    best = min(errors, key=lambda cap: errors[cap])
    return best if errors[best] < 0.8 * errors[generous] else generous


@pytest.mark.parametrize("use", ["sum", "rescaled", "rank"])
@pytest.mark.parametrize("norm", [1, 2])
def test_the_cap_has_the_least_error(use: Use, norm: int) -> None:
    cells = [300, 200, 100, 80, 60, 50, 45, 60]
    for groups in (1, 7, 40):
        for epsilon in (0.005, 0.02, 0.1, 0.5, 3.0):
            situation = replace(BASE, use=use, norm=norm, groups=groups, epsilon_sums=epsilon)
            chosen = caps.choose(cells_of(cells), situation)
            assert chosen.cap == pytest.approx(least(cells, situation, chosen.generous))


def test_unknown_groups_are_at_least_as_many_as_one_unit_is_in() -> None:
    cells = cells_of([300, 200, 100, 80, 60, 50, 45, 300])
    for epsilon in (0.005, 0.02, 0.05, 0.1, 0.5):
        asked = replace(BASE, use="sum", epsilon_sums=epsilon, groups=None)
        assert caps.choose(cells, asked) == caps.choose(cells, replace(asked, groups=32))
        paired = caps.choose(cells, replace(asked, paired=True))
        assert paired == caps.choose(cells, replace(asked, groups=64))


@pytest.mark.statistical
def test_caps_are_hardly_ever_absurd() -> None:
    """10,000 censuses of a thousand units with up to 16 rows. A cap of more than 1,024 rows needs a cell 6
    doublings above the others, worth 12.6 nats: a chance of about 5 windows times 40 cells times e^-12.6 a
    census, so fewer than 10 are expected; 40 have a chance below 1e-12.
    """
    counts = cumulative([200, 400, 300, 90, 10])
    absurd = 0
    for _ in range(10_000):
        cells, _ = caps.noisy_census(counts, Fraction(1, 5), 1)
        chosen = caps.choose(cells, replace(BASE, epsilon=0.2))
        assert chosen.cap >= 4
        absurd += chosen.cap > 1_024
    assert absurd < 40


def test_a_higher_confidence_leaves_room_for_more_units_beyond_and_a_higher_cap_for_fewer() -> None:
    cells = cells_of([900, 500, 300, 200, 100])
    beyond = [caps.most_beyond(cells, 4.0, BASE, confidence) for confidence in (0.5, 0.8, 0.95, 0.999)]
    assert beyond == sorted(set(beyond)) and beyond[0] == 300
    assert beyond[2] > caps.most_beyond(cells, 8.0, BASE, 0.95) > caps.most_beyond(cells, 16.0, BASE, 0.95)


@pytest.mark.statistical
def test_as_many_units_as_stated_may_be_beyond() -> None:
    """2,000 censuses at 95%: 5.5 standard deviations below have a chance below 1e-7."""
    counts = cumulative([500, 300, 60, 40, 20, 9, 3])
    situation = replace(BASE, epsilon=0.3)
    held = 0
    stated = []
    for _ in range(2_000):
        cells, _ = caps.noisy_census(counts, Fraction(3, 10), 1)
        stated.append(caps.most_beyond(cells, 8.0, situation, 0.95))
        held += stated[-1] >= 20 + 9 + 3
    assert 0.95 - 5.5 * math.sqrt(0.95 * 0.05 / 2_000) <= held / 2_000 <= 0.985
    assert np.median(stated) < 100


@pytest.mark.statistical
@pytest.mark.parametrize("held", [[50], [500, 300, 60, 40, 20, 9, 3], [9] * 16])
@pytest.mark.parametrize("place", [0, 3, 6, 10, 11, 12, 20, 40])
def test_as_many_units_as_stated_may_be_beyond_with_far_cells(held: list[int], place: int) -> None:
    """2,000 censuses at 95%: 5.5 standard deviations have a chance below 1e-7.

    Ideally one noisy count says it, which reaches ln 10 / epsilon beyond the truth. Near cells, of
    which there are 11, and the total of far ones reach 4 times as far at most; with all cells alike 6.5.
    """
    counts, rate = cumulative(held), 0.3
    far = caps.first_far(1.0, True)
    situation = replace(BASE, epsilon=rate, far=far)
    beyond = sum(held[place + 1 :])
    stated = []
    for _ in range(2_000):
        cells, far_units = caps.noisy_census(counts, Fraction(3, 10), 1, far)
        stated.append(caps.most_beyond(cells, 2.0**place, situation, 0.95, far_units))
    covered = np.mean([units >= beyond for units in stated])
    spread = 5.5 * math.sqrt(0.95 * 0.05 / 2_000)
    assert covered >= 0.95 - spread
    if beyond > 60:
        assert covered <= 0.965 + spread
    if place <= far + 1:
        assert np.median(stated) <= beyond + 4 * math.log(10) / rate


def test_the_last_cell_is_always_beyond() -> None:
    cells = np.zeros(CELLS, dtype=np.int64)
    cells[-1] = 7
    assert caps.most_beyond(cells, 2.0**60, replace(BASE, epsilon=1e6), 0.95) == 7
    cells[-2] = 5
    assert caps.most_beyond(cells, 2.0 ** (CELLS - 2), replace(BASE, epsilon=1e6), 0.95) == 7
    assert caps.most_beyond(cells, 2.0 ** (CELLS - 2) - 1, replace(BASE, epsilon=1e6), 0.95) == 12


@given(st.floats(1e-3, 1e12), st.floats(1, 4096))
def test_totals_share_their_epsilon_by_their_caps(cap: float, span: float) -> None:
    small, large = caps.totals_shares(cap, cap * span)
    assert small + large == pytest.approx(1.0)
    assert caps.LEAST_TOTAL <= small <= 0.5 + 1e-12


JOINT = Situation("joint", epsilon=1.0, epsilon_sums=1.0, row=64.0, counts=True)


@pytest.mark.parametrize(
    ("held", "cap", "factor"),
    [
        # Units that are all light may weigh four times as much; at half of the cap, twice.
        ([0] * 7 + [1_000], 2.0**12, caps.LIGHTEST),
        ([0] * 7 + [1_000], 2.0**8, 0.5),
        ([0] * 7 + [1_000], 2.0**7, 1.0),
        # A few units with most of the rows decide it, not the many light ones.
        ([0] * 7 + [1_000] + [0] * 6 + [100], 2.0**14, 1.0),
        ([], 2.0**12, 1.0),
    ],
)
def test_counts_weigh_more_only_where_that_cuts_little(held: list[int], cap: float, factor: float) -> None:
    assert caps.lighter(cells_of(held), cap, JOINT) == factor
