"""Prices: the lines add up, no mechanism is weaker than its line states, nothing private is read."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd import Curator, InvalidInput, NotPermitted, QueryError
from incrowd.curator import pricing
from incrowd.curator.prices import Line, Price
from incrowd.curator.request import Request
from incrowd.mechanisms import Gaussian, Laplace, TruncatedLaplace
from incrowd.privacy import gaussian, least_sigma

PEOPLE = pa.table(
    {"id": [1, 1, 2, 3], "age": [20, 30, 40, 50], "town": ["a", "b", "a", "c"], "pay": [1.0, 2.5, 3.0, 9.0]}
)
BOUNDS = {"age": (0, 120), "pay": (0, 10)}
QUESTIONS = [
    "SELECT COUNT(*) FROM people",
    "SELECT town, COUNT(*) FROM people GROUP BY town",
    "SELECT town, AVG(age), SUM(pay), COUNT(DISTINCT id) FROM people GROUP BY town",
    "SELECT MEDIAN(age), QUANTILE_CONT(age, 0.9), MIN(pay) FROM people",
    "SELECT CORR(age, pay), STDDEV(age), VAR_POP(pay), COVAR_SAMP(age, pay), COUNT(*), SUM(age) FROM people",
    """SELECT a.n / b.n AS r
       FROM (SELECT COUNT(*) AS n FROM people WHERE age > 30) a, (SELECT COUNT(*) AS n FROM people) b""",
]


def curator(**changes: object) -> Curator:
    settings = {"unit": "id", "bounds": BOUNDS, "budget": (5.0, 1e-5), **changes}
    return Curator.from_tables(people=PEOPLE, **settings)  # type: ignore[arg-type]


@given(
    st.sampled_from(QUESTIONS),
    st.floats(0.01, 4.0),
    st.sampled_from([1e-6, 1e-9]),
    st.booleans(),
    st.sampled_from(["id", "row"]),
)
@settings(max_examples=40, deadline=None)
def test_the_guarantee_of_the_lines_is_within_the_price(
    question: str, epsilon: float, delta: float, rescale: bool, unit: str
) -> None:
    if unit == "row":
        question = question.replace("COUNT(DISTINCT id)", "COUNT(id)")
    price = curator(unit=unit).price(question, epsilon=epsilon, delta=delta, rescale=rescale)
    assert price.delta <= delta * (1 + 1e-12)
    assert price.guarantee.epsilon(price.delta) <= epsilon * (1 + 1e-9)


def test_laplace_shares_add_up_to_epsilon_exactly() -> None:
    price = curator().price("SELECT AVG(age), SUM(pay), MEDIAN(pay) FROM people", epsilon=0.7, delta=0.0)
    assert sum((line.epsilon for line in price.lines), Fraction(0)) == Fraction("0.7")


def lines_and_measures(
    made: Curator, question: str, price: Price
) -> list[tuple[Line, Laplace | Gaussian | TruncatedLaplace]]:
    plan = made.prepare(Request(question)).plan
    pairs = []
    for line in price.lines:
        if line.kind == "sum":
            leaf = plan.leaves[line.leaf]
            measure = leaf.released_by(line.target)
            measure = measure if measure.cap is not None else measure.capped(13.7)
            pairs.append((line, line.mechanism(measure, leaf.distance)))
    return pairs


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_no_mechanism_is_weaker_than_its_line_states(question: str, relation: str) -> None:
    made = curator(relation=relation)
    for delta in (1e-6, 0.0):
        if delta == 0.0 and "GROUP BY town" in question:
            continue
        price = made.price(question, epsilon=1.0, delta=delta)
        for line, mechanism in lines_and_measures(made, question, price):
            for at in (1e-4, 1e-8):
                assert mechanism.privacy.epsilon(at) <= line.guarantee.epsilon(at) * (1 + 1e-9)  # type: ignore[attr-defined]
            assert mechanism.privacy.rho <= line.guarantee.rho * (1 + 1e-9)  # type: ignore[attr-defined]


def test_many_sums_get_gaussian_noise_where_it_is_narrower() -> None:
    many = ", ".join(
        f"SUM(CASE WHEN age > {bound} THEN 1 ELSE 0 END) AS s{bound}" for bound in range(0, 120, 2)
    )
    price = curator().price(f"SELECT {many} FROM people", epsilon=1.0, delta=1e-6, contribution=1)
    assert {line.noise for line in price.lines} == {"gaussian"}
    pure = curator().price(f"SELECT {many} FROM people", epsilon=1.0, delta=0.0, contribution=1)
    assert {line.noise for line in pure.lines} == {"laplace"}
    wide, narrow = (max(w for w in quote.halfwidths.values() if w is not None) for quote in (pure, price))
    assert narrow < wide / 2


def test_a_price_reads_no_private_row(tmp_path: Path) -> None:
    """The rows are gone when the price is asked for; it does not notice."""
    file = tmp_path / "people.parquet"
    pq.write_table(PEOPLE, file)
    catalog = tmp_path / "curator.yaml"
    catalog.write_text(
        "sources: {files: {parquet: people.parquet}}\n"
        "tables: {people: {unit: id, columns: {id: {type: integer}, town: {type: text}}}}\n"
        "budget: {epsilon: 2, delta: 1.0e-6}\n"
    )
    with Curator.open(catalog, new_ledger=True) as made:
        file.unlink()
        price = made.price("SELECT town, COUNT(*) FROM people GROUP BY town", epsilon=0.5)
        assert price.epsilon == 0.5
        assert made.budget()[0].spent.rho == 0


def test_within_finds_the_cheapest_epsilon() -> None:
    made = curator(unit="row")
    question = "SELECT COUNT(*) AS n FROM people"
    price = made.price(question, within=5, confidence=0.95)
    (width,) = price.halfwidths.values()
    assert width is not None and width <= 5
    (wider,) = made.price(question, epsilon=price.epsilon * 0.99, confidence=0.95).halfwidths.values()
    assert wider is not None and wider > 5


def test_within_and_epsilon_are_both_caps() -> None:
    made = curator(unit="row")
    with pytest.raises(NotPermitted, match="larger error"):
        made.price("SELECT COUNT(*) FROM people", epsilon=0.01, within=1)
    assert made.price("SELECT AVG(age) FROM people", epsilon=0.01, within=1).epsilon == 0.01


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), "1", None.__class__])
def test_a_wrong_epsilon_is_one_sentence(epsilon: object) -> None:
    with pytest.raises((InvalidInput, NotPermitted), match="epsilon"):
        curator().price("SELECT COUNT(*) FROM people", epsilon=epsilon)  # type: ignore[arg-type]


@pytest.mark.parametrize("epsilon", [5.1, 1e20])
def test_an_epsilon_above_policy_is_refused(epsilon: float) -> None:
    with pytest.raises(NotPermitted, match="whole budget"):
        curator().ask("SELECT COUNT(*) FROM people", epsilon=epsilon)
    with pytest.raises(NotPermitted, match="whole budget"):
        curator().ask(f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon={epsilon}) COUNT(*) FROM people")


def test_private_keys_need_a_delta() -> None:
    with pytest.raises(QueryError, match="town"):
        curator(budget=(5.0, 0.0)).price("SELECT town, COUNT(*) FROM people GROUP BY town", epsilon=1.0)


def test_halfwidths_are_told_by_the_columns_of_the_answer() -> None:
    made = curator(unit="row", domains={"town": ["a", "b"]})
    question = """SELECT t.town AS place, t.n AS people, t.n * 2 AS twice
                  FROM (SELECT town, COUNT(*) AS n FROM people GROUP BY town) t"""
    widths = made.price(question, epsilon=1.0).halfwidths
    assert list(widths) == ["people", "twice"]
    assert widths["people"] is not None and widths["twice"] is None


def test_a_price_tells_what_would_be_left_and_whether_it_fits() -> None:
    made = curator(unit="row", budget=(1.0, 0.0))
    price = made.price("SELECT COUNT(*) FROM people", epsilon=0.75)
    assert price.fits and price.before[0].left.main == 1.0
    assert 0.2499 < price.remaining[0].left.main <= 0.25
    made.ask("SELECT COUNT(*) FROM people", epsilon=0.75)
    assert not made.price("SELECT COUNT(*) FROM people WHERE age > 1", epsilon=0.75).fits


@pytest.mark.parametrize("epsilon", [1e-13, 1e-9, 1e-6])
@pytest.mark.parametrize(
    "question",
    [
        "SELECT DISTINCT town FROM people WHERE id = 5",
        "SELECT MEDIAN(age) FROM people",
        "SELECT town, COUNT(DISTINCT id), SUM(pay), AVG(age) FROM people GROUP BY town",
    ],
)
def test_noise_too_wide_to_draw_is_refused_before_anything_is_read_or_spent(
    question: str, epsilon: float
) -> None:
    """Else an error would show whether a row was there."""
    made = curator()
    head = made.ledger.head()
    with pytest.raises(InvalidInput, match="too little"):
        made.ask(question, epsilon=epsilon, delta=1e-8)
    assert made.ledger.head() == head


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_least_epsilon_that_is_priced_can_be_drawn(question: str) -> None:
    made = curator()
    with pytest.raises(InvalidInput) as caught:
        made.price(question, epsilon=1e-9, delta=1e-6)
    least = float(str(caught.value).rstrip(".").split()[-1])
    made.ask(question, epsilon=least * 1.05, delta=1e-6)


def test_a_plan_bounded_in_l2_cannot_be_priced_without_delta() -> None:
    made = curator()
    sql = "SELECT pay > 2 AS rich, COUNT(DISTINCT id) FROM people GROUP BY rich"
    plan = made.prepare(Request(sql, groups=100, delta=1e-6)).plan
    assert plan.leaves[0].norm == 2
    with pytest.raises(InvalidInput, match="bound it again"):
        pricing.price(plan, 1.0, 0.0)


def test_sums_are_clamped_to_what_mechanisms_take() -> None:
    from incrowd.backends.measures import MOST_RELEASED
    from incrowd.mechanisms.additive.grid import LIMIT

    assert MOST_RELEASED <= LIMIT


COUNTED = "SELECT town, COUNT(DISTINCT id) AS n FROM people GROUP BY town"


@pytest.mark.parametrize(
    ("groups", "noise", "kind"),
    [(1, "thresholded", TruncatedLaplace), (5, "thresholded", TruncatedLaplace), (6, "gaussian", Gaussian)],
)
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_a_count_that_decides_has_all_of_epsilon_and_the_noise_of_its_cap(
    relation: str, groups: int, noise: str, kind: type
) -> None:
    with curator(relation=relation) as asked:
        question = asked.prepare(Request(COUNTED, 0.5, delta=1e-6, groups=groups))
        (line,) = asked.price_of(question).lines
    (leaf,) = question.plan.leaves
    mechanism = line.mechanism(leaf.measures["m0"], leaf.distance)
    assert (line.kind, line.noise) == ("sum", noise) and isinstance(mechanism, kind)
    assert line.guarantee.epsilon(1e-6) == pytest.approx(0.5, rel=1e-3)
    if isinstance(mechanism, TruncatedLaplace):
        one = leaf.measures["m0"].limit_steps
        assert mechanism.sensitivity == groups * one * leaf.distance and mechanism.largest == one
        assert mechanism.exact_epsilon == Fraction(1, 2) and mechanism.exact_delta == Fraction(1, 10**6)


def test_a_count_whose_cap_is_open_is_ready_for_either_noise() -> None:
    with curator() as asked:
        question = asked.prepare(Request(COUNTED, 0.5, delta=1e-6))
        price = asked.price_of(question)
    census, line = price.lines
    assert line.noise == "thresholded" and census.epsilon + line.epsilon == Fraction(1, 2)
    assert gaussian(line.mu).delta(float(line.epsilon)) <= 5e-7
    (leaf,) = question.plan.leaves
    for cap, kind in ((1.0, TruncatedLaplace), (5.0, TruncatedLaplace), (6.0, Gaussian), (900.0, Gaussian)):
        known = leaf.with_caps(dict.fromkeys(leaf.uncapped, cap))
        assert isinstance(line.mechanism(known.measures["m0"], leaf.distance), kind)


def test_shared_gaussian_noise_adds_up_to_the_price_and_no_more() -> None:
    parts = {("sum", "a"): Fraction(1, 4), ("sum", "b"): Fraction(3, 4)}
    mus = pricing._shared_mu(parts, Fraction(1, 10**6))  # type: ignore[arg-type]
    assert mus["sum", "b"] == pytest.approx(3**0.5 * mus["sum", "a"], rel=1e-12)
    whole = sum(Fraction(mu) ** 2 for mu in mus.values())
    # The analytic calibration of (1, 1e-6).
    assert float(whole) == pytest.approx(1 / least_sigma(1.0, 1e-6) ** 2, rel=1e-12)
    assert whole <= 1 / Fraction(least_sigma(1.0, 1e-6)) ** 2 * (1 + Fraction(1, 10**14))
    assert (gaussian(mus["sum", "a"]) + gaussian(mus["sum", "b"])).epsilon(1e-6) <= 1.0
    assert pricing._shared_mu({}, Fraction(1, 10**6)) == {}


@pytest.mark.parametrize(
    ("question", "shares"),
    [
        ("SELECT COUNT(*) FROM people", {"sum": ["1"]}),
        ("SELECT AVG(age) FROM people", {"sum": ["3/5", "2/5"]}),
        ("SELECT VAR_POP(age) FROM people", {"sum": ["1/4", "1/2", "1/4"]}),
        ("SELECT MEDIAN(age) FROM people", {"quantile": ["1"]}),
        # A count, a sum and an average have one part each.
        ("SELECT COUNT(age), SUM(age) FROM people", {"sum": ["1/2", "1/2"]}),
        ("SELECT COUNT(age), SUM(age), AVG(age) FROM people", {"sum": ["1/3", "1/3", "1/5", "2/15"]}),
    ],
)
def test_how_epsilon_is_shared_by_what_is_asked(question: str, shares: dict[str, list[str]]) -> None:
    made = curator(unit="row").price(question, epsilon=0.5, delta=0.0)
    epsilons: dict[str, list[Fraction]] = {}
    for line in made.lines:
        epsilons.setdefault(line.kind, []).append(line.epsilon)
    assert sum(sum(parts) for parts in epsilons.values()) == Fraction(1, 2)
    assert {kind: sorted(float(part * 2) for part in parts) for kind, parts in epsilons.items()} == {
        kind: pytest.approx(sorted(float(Fraction(part)) for part in parts), rel=1e-12)
        for kind, parts in shares.items()
    }


@pytest.mark.parametrize(
    ("question", "shares"),
    [
        ("SELECT COUNT(*) FROM people", {"census": 0.54, "sum": 1.0}),
        ("SELECT SUM(pay) FROM people", {"census": 0.54, "sum": 1.0}),
        ("SELECT MEDIAN(pay) FROM people", {"census": 0.15, "quantile": 1.0}),
        ("SELECT age, COUNT(*) FROM people GROUP BY age", {"census": 0.15, "totals": 0.1, "sum": 1.0}),
        ("SELECT AVG(pay) FROM people", {"centre": 0.3, "census": 0.3, "sum": 1.0}),
        # What is over the same rows is one ball.
        (
            "SELECT AVG(pay), STDDEV(pay), VAR_POP(pay) FROM people",
            {"centre": 0.3, "census": 0.3, "sum": 3.0},
        ),
        (
            "SELECT AVG(pay), COUNT(pay) FROM people",
            {"centre": 0.3, "census": 0.54 + 0.3, "sum": 1.0 + 1.0},
        ),
        (
            "SELECT AVG(pay), MEDIAN(pay) FROM people",
            {"centre": 0.3, "census": 0.3 + 0.15, "sum": 1.0, "quantile": 1.0},
        ),
    ],
)
def test_a_census_has_a_share_by_what_its_cap_is_for(question: str, shares: dict[str, float]) -> None:
    made = curator(domains={"age": list(range(121))}).price(question, epsilon=1.25, delta=0.0)
    epsilons: dict[str, Fraction] = {}
    for line in made.lines:
        epsilons[line.kind] = epsilons.get(line.kind, Fraction(0)) + line.epsilon
    assert sum(epsilons.values()) == Fraction(5, 4)
    whole = sum(shares.values())
    assert {kind: float(epsilon) for kind, epsilon in epsilons.items()} == pytest.approx(
        {kind: 1.25 * share / whole for kind, share in shares.items()}, rel=1e-12
    )


def test_a_price_says_the_caps_that_are_known_beforehand() -> None:
    question = "SELECT COUNT(*), SUM(pay), AVG(age) FROM people"
    assert dict(curator().price(question, epsilon=1.0).caps) == {}
    named = curator().price(question, epsilon=1.0, contribution=3)
    assert named.caps == {"COUNT(*)": 3.0, "SUM(pay)": 30.0, "AVG(age)": 3.0}
    rows = curator(unit="row").price(question, epsilon=1.0)
    assert rows.caps == {"COUNT(*)": None, "SUM(pay)": None, "AVG(age)": None}


def test_too_little_is_refused_just_below_the_least_share() -> None:
    def lines(epsilon: Fraction, mu: float) -> list[Line]:
        noisy = Line(0, "sum", "b", "b", "gaussian", mu=mu)
        return [Line(0, "sum", "a", "a", "laplace", epsilon), noisy]

    pricing._refuse_too_little([], 1.0)
    pricing._refuse_too_little(lines(Fraction(1, 10**5), 1e-5), 1.0)
    # The totals share their line: one of the two may get a tenth of it.
    totals = [Line(0, "totals", "a", "a", "laplace", Fraction(1, 10**4))]
    pricing._refuse_too_little(totals, 1.0)
    with pytest.raises(InvalidInput, match="too little"):
        pricing._refuse_too_little([replace(totals[0], epsilon=Fraction(99, 10**6))], 1.0)
    for few in (lines(Fraction(1, 10**6), 1.0), lines(Fraction(1), 1e-6)):
        with pytest.raises(
            InvalidInput, match=r"epsilon 2 is too little for 2 releases: ask for at least 20\."
        ):
            pricing._refuse_too_little(few, 2.0)


def test_a_wrong_delta_or_confidence_is_one_sentence() -> None:
    plan = curator(unit="row").prepare(Request("SELECT COUNT(*) FROM people")).plan
    for delta in (-0.1, 1, 1.5, "1"):
        with pytest.raises(InvalidInput, match="delta must be a number"):
            pricing.price(plan, 1.0, delta)  # type: ignore[arg-type]
    for confidence in (0.0, 1.0, -1.0):
        with pytest.raises(InvalidInput, match="confidence must lie"):
            pricing.price(plan, 1.0, 0.0, confidence=confidence)
    assert pricing.price(plan, 1, 0).epsilon == 1.0


@pytest.mark.parametrize(("ranks", "noise"), [((0.5,), "exponential"), ((0.1, 0.5, 0.9), "laplace")])
def test_a_quantile_s_line_says_whether_its_point_is_drawn_and_how_high_its_tree_is(
    ranks: tuple[float, ...], noise: str
) -> None:
    asked = ", ".join(f"QUANTILE_CONT(age, {rank})" for rank in ranks)
    priced = curator().price(f"SELECT {asked} FROM people", 1.0, delta=0.0, contribution=1)
    (line,) = priced.lines
    assert (line.kind, line.noise) == ("quantile", noise)
    assert line.levels == 2 and line.least == pytest.approx(1 / 2 * (1 / 5 if noise == "exponential" else 1))
