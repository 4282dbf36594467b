"""The curator as a mechanism: what is asked is what is audited, and half the noise is caught."""

from __future__ import annotations

from dataclasses import replace

import pytest

from incrowd.adversary.audit import audit
from incrowd.adversary.audit.curators import BASE, CURATORS, GROUPED, ONE, Asked
from incrowd.curator.prices import Line

SURE = 1 - 1e-7
CASES = {case.name: case for case in CURATORS}
WIDE = {"curator: COUNT": 0.03, "curator: SUM": 0.03, "curator: AVG": 0.02, "curator: MEDIAN": 0.02}
KEYS = {"curator: private keys, one alone": 0.02, "curator: private keys, a crowd": 0.02}


@pytest.mark.statistical
@pytest.mark.parametrize("name", [*WIDE, *KEYS])
def test_answers_through_ask_keep_the_price(name):
    """Fails by chance below 1e-6."""
    result = CASES[name].audited(share={**WIDE, **KEYS}[name], confidence=SURE)
    assert result.verdict == "consistent"
    if name in ("curator: COUNT", "curator: SUM"):
        assert result.bound > 0.3  # the attacker is no straw man


mechanism = Line.mechanism


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["curator: COUNT", "curator: SUM"])
def test_half_the_noise_is_caught_through_ask(name, monkeypatch):
    """Fails by chance below 1e-6: the bound lies ten deviations above the claim."""

    def narrowed(self, measure, distance):
        return mechanism(replace(self, epsilon=self.epsilon * 2), measure, distance)

    monkeypatch.setattr(Line, "mechanism", narrowed)
    assert CASES[name].audited(share=0.06, confidence=SURE).verdict == "violates"


def test_a_block_has_its_own_groups_and_units():
    asked = Asked(GROUPED.format("COUNT(*)"), ONE, size=2)
    table = asked.table(((1, 0, 1.0), (1, 1, None)), blocks=3)
    assert table.to_pydict() == {
        "id": [1, 1, 1001, 1001, 2001, 2001],
        "g": [0, 1, 2, 3, 4, 5],
        "x": [1.0, None, 1.0, None, 1.0, None],
    }
    assert len(asked(BASE, 5)) == 5 and all(len(output) == 2 for output in asked(BASE, 5))


def test_a_small_table_is_asked_again_and_again_without_a_recall():
    asked = Asked("SELECT COUNT(*) AS v FROM t", ONE, blocks=1)
    assert len(set(asked(BASE, 25))) > 1
    assert audit(asked.__call__, BASE, BASE, epsilon=1.0, samples=40).verdict == "consistent"
