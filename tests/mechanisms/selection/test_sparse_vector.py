"""Sparse vector: exact probabilities of whole transcripts, and the published variants that break it."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
import threading
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.errors import InvalidInput, Refused
from incrowd.mechanisms import SparseVector
from incrowd.noise import SeededSource, discrete_laplace_pmf, discrete_laplace_sf
from tests.mechanisms.checks import FAILURE, surprise


def transcripts(m, questions):
    """Every transcript that can come out, with its exact probability."""
    probabilities = {}
    for length in range(1, len(questions) + 1):
        for answers in itertools.product((False, True), repeat=length):
            full = length == len(questions) and sum(answers) < m.hits
            stopped = sum(answers) == m.hits and answers[-1]
            if full or stopped:
                probabilities[answers] = m.probability(questions[:length], answers)
    return probabilities


def epsilon_between(m, one, other):
    p, q = transcripts(m, one), transcripts(m, other)
    return max(abs(math.log(p[key]) - math.log(q[key])) for key in p)


@settings(max_examples=50, deadline=None)
@given(
    st.sampled_from([0.3, 1.0, 4.0]),
    st.integers(1, 3),
    st.lists(st.integers(-8, 8), min_size=1, max_size=5),
    st.integers(1, 2),
    st.booleans(),
    st.data(),
)
def test_no_transcript_is_more_than_epsilon_likelier(epsilon, hits, one, sensitivity, monotone, data):
    m = SparseVector(epsilon, threshold=1, hits=hits, sensitivity=sensitivity, monotone=monotone)
    sign = data.draw(st.sampled_from([-1, 1]))
    moves = [data.draw(st.integers(0 if monotone else -sensitivity, sensitivity)) for _ in one]
    other = [q + sign * move for q, move in zip(one, moves, strict=True)]
    assert sum(transcripts(m, one).values()) == pytest.approx(1, abs=1e-9)
    assert epsilon_between(m, one, other) <= m.privacy.epsilon() * (1 + 1e-9)


def test_the_claim_is_nearly_reached():
    m = SparseVector(1.0, threshold=0, hits=1)
    one, other = [0] * 12 + [-60], [1] * 12 + [-61]
    answers = [False] * 12 + [True]
    ratio = math.log(m.probability(one, answers) / m.probability(other, answers))
    assert 0.85 < ratio <= 1


def variant(threshold_scale, question_scale, one, answers, *, value=None):
    """The probability of a transcript of a sparse vector with these scales and no stop; threshold 0.

    A question scale of None means no noise. With `value`, the last question is a hit that releases its own
    compared noisy value.
    """
    noise = np.arange(-3000, 3001)
    chance = np.asarray(discrete_laplace_pmf(noise, threshold_scale))
    for place, (question, above) in enumerate(zip(one, answers, strict=True)):
        if value is not None and place == len(one) - 1:
            mass = float(discrete_laplace_pmf(value - question, question_scale))
            chance = chance * mass * (value >= noise)
        elif question_scale is None:
            chance = chance * ((question >= noise) == above)
        else:
            over = np.asarray(discrete_laplace_sf(noise - question - 1, question_scale))
            chance = chance * (over if above else 1 - over)
    return float(chance.sum())


def test_the_variant_helper_agrees_with_the_mechanism():
    m = SparseVector(1.0, threshold=0, hits=2)
    one, answers = [3, -2, 0], [True, False, True]
    assert variant(m.threshold_scale, m.question_scale, one, answers) == pytest.approx(
        m.probability(one, answers), rel=1e-9
    )


EPSILON = 1.0
BROKEN = {
    # Lyu, Su, Li 2017: Algorithm 3 (Roth's notes) releases the noisy value that was compared.
    "releases the compared value": (
        lambda q, a: variant(2 / EPSILON, 2 / EPSILON, q, a, value=0),
        [0] * 14 + [1],
        [1] * 14 + [0],
        [False] * 14 + [True],
    ),
    # Algorithm 4 (Lee, Clifton 2014): question noise does not grow with the number of hits, here 6.
    "noise that does not grow with the hits": (
        lambda q, a: variant(4 / EPSILON, Fraction(4, 3) / EPSILON, q, a),
        [0] * 6 + [-30] * 6,
        [1] * 6 + [-31] * 6,
        [False] * 6 + [True] * 6,
    ),
    # Algorithm 5 (Stoddard, Chen, Machanavajjhala 2014): no noise on the questions at all.
    "no noise on the questions": (
        lambda q, a: variant(2 / EPSILON, None, q, a),
        [0, 1],
        [1, 0],
        [False, True],
    ),
    # Algorithm 6 (Chen, Xiao, Zhang, Xu 2015): no stop, and noise that does not know how many hits.
    "no stop": (
        lambda q, a: variant(2 / EPSILON, 2 / EPSILON, q, a),
        [0] * 24,
        [1] * 12 + [-1] * 12,
        [False] * 12 + [True] * 12,
    ),
    # Generalised private threshold testing (Chen, Machanavajjhala 2015): Algorithm 6 with another split.
    "no stop, most of the budget on the questions": (
        lambda q, a: variant(10 / EPSILON, Fraction(10, 9) / EPSILON, q, a),
        [0] * 24,
        [1] * 12 + [-1] * 12,
        [False] * 12 + [True] * 12,
    ),
    # One-sided noise: the factor 2 forgotten for questions that move both ways, one hit.
    "the monotone noise for questions that are not": (
        lambda q, a: variant(8 / EPSILON, Fraction(8, 7) / EPSILON, q, a),
        [0] * 12 + [-30],
        [1] * 12 + [-31],
        [False] * 12 + [True],
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_published_variants_that_break_it_are_caught(name):
    probability, one, other, answers = BROKEN[name]
    p, q = probability(one, answers), probability(other, answers)
    ratio = math.inf if 0 in (p, q) and p != q else abs(math.log(p / q))
    assert ratio > EPSILON * 1.2, f"{name}: {ratio}"


def test_the_same_questions_do_not_break_ours():
    for _, one, other, answers in BROKEN.values():
        m = SparseVector(EPSILON, threshold=0, hits=max(1, sum(answers)))
        assert abs(math.log(m.probability(one, answers) / m.probability(other, answers))) <= EPSILON


@pytest.mark.statistical
def test_released_transcripts_follow_the_stated_probabilities():
    """Fails by chance below 1e-7."""
    m = SparseVector(2.0, threshold=1, hits=2)
    questions = [0, 2, -1, 3]
    stated = transcripts(m, questions)
    place = {answers: index for index, answers in enumerate(stated)}
    seen = [place[tuple(m.release(questions))] for _ in range(4_000)]
    assert surprise(seen, list(stated.values())) > FAILURE
    mutant = transcripts(SparseVector(3.0, threshold=1, hits=2), questions)
    assert surprise(seen, list(mutant.values())) < 1e-9


@pytest.mark.statistical
def test_values_of_hits_are_fresh_and_follow_their_law():
    """The error of a released value does not depend on the comparison. Fails by chance below 1e-7."""
    m = SparseVector(4.0, threshold=-(10**7), hits=4_000, values=Fraction(1, 2), sensitivity=1)
    errors = np.array(m.release([5] * 4_000)) - 5
    reach = int(30 * m.value_scale)
    width = math.ceil(m.value_scale / 4)
    edges = np.arange(-reach, reach + width, width)
    masses = [
        float(discrete_laplace_sf(a - 1, m.value_scale) - discrete_laplace_sf(a + width - 1, m.value_scale))
        for a in edges
    ]
    assert len(errors) == 4_000
    assert surprise((np.clip(errors, -reach, reach) + reach) // width, masses) > FAILURE


def test_a_session_stops_itself():
    session = SparseVector(50.0, threshold=0, hits=2).start()
    assert [session.ask(q) for q in (-100, 100, -100, 100)] == [False, True, False, True]
    assert session.closed and session.left == 0
    with pytest.raises(Refused, match="open another"):
        session.ask(100)
    assert SparseVector(50.0, threshold=0, hits=1).release([-100, 100, 100]) == [False, True]


def test_numeric_answers_and_reals():
    m = SparseVector(200.0, threshold=0, hits=3, values=0.5)
    assert m.release([-50, 60, -50]) == [None, 60, None]
    r = SparseVector(200.0, threshold=0.5, hits=1, sensitivity=0.25, values=0.5)
    assert r.release([-9.0, 7.5])[1] == pytest.approx(7.5, abs=0.2)
    assert m.privacy.epsilon() == 200


def test_threads_cannot_take_more_hits_than_were_paid_for():
    session = SparseVector(50.0, threshold=0, hits=5).start()
    taken = []

    def ask():
        for _ in range(20):
            try:
                taken.append(session.ask(10**6))
            except Refused:
                return

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(taken) == 5


def test_a_session_is_never_copied():
    session = SparseVector(1.0).start()
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="never copied"):
            attempt(session)


def test_a_refused_question_answers_nothing_of_a_list():
    class Untouched:
        def words(self, count, dtype):
            raise AssertionError("random bits were drawn for a list that is refused")

    for questions in ([1, float("nan")], [1, "2"], [1, [2, 3]], 5, "12", [1, 2.5]):
        with pytest.raises(InvalidInput) as caught:
            SparseVector(1.0).release(questions, source=Untouched())
        assert str(caught.value).endswith(".")


def test_the_halfwidth_is_kept():
    m = SparseVector(1.0, threshold=0, hits=1)
    h = m.halfwidth(0.9, questions=5)
    assert m.probability([-h] * 4 + [h + 1], [False] * 4 + [True]) >= 0.9


def test_the_split_beats_halves():
    """The variance of the comparison is smaller than with e1 = e2."""
    for hits in (1, 10, 100):
        m = SparseVector(1.0, threshold=0, hits=hits)
        ours = 2 * m.threshold_scale**2 + 2 * m.question_scale**2
        assert ours < 2 * Fraction(2) ** 2 + 2 * Fraction(4 * hits) ** 2


def test_seeded_sessions_repeat():
    m = SparseVector(0.5, threshold=0, hits=3)
    assert m.release(range(-5, 5), SeededSource(2)) == m.release(range(-5, 5), SeededSource(2))


@pytest.mark.parametrize(
    "given",
    [
        {"epsilon": 0},
        {"epsilon": "1"},
        {"epsilon": 1, "threshold": float("nan")},
        {"epsilon": 1, "threshold": "5"},
        {"epsilon": 1, "hits": 0},
        {"epsilon": 1, "hits": 1.5},
        {"epsilon": 1, "sensitivity": 0},
        {"epsilon": 1, "monotone": 1},
        {"epsilon": 1, "values": 1},
        {"epsilon": 1, "values": -0.1},
        {"epsilon": 1, "grid": 3},
        {"epsilon": 1e-16},
    ],
)
def test_bad_parameters_get_one_sentence(given):
    with pytest.raises(InvalidInput) as caught:
        SparseVector(**given)
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)
