"""Subsample and aggregate: the exact law over all partitions, blocks that misbehave, mutants, bad input."""

from __future__ import annotations

import ctypes
import itertools
import math
import multiprocessing
import os
import statistics
import time
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.errors import IncrowdError, InvalidInput
from incrowd.mechanisms import SubsampleAndAggregate
from incrowd.mechanisms.robust.blocks import Limits, run_blocks
from tests.mechanisms.checks import FAILURE, smallest_epsilon, surprise


def make(function=sum, epsilon=1.0, **options):
    return SubsampleAndAggregate(function, epsilon, **{"blocks": 3, "low": 0, "high": 6, **options})


def law(m, values, members=lambda block, choice: block == choice):
    """The exact law of the released median, over every way to put the records into blocks."""
    total = np.zeros(m.interval.points)
    ways = list(itertools.product(range(m.blocks), repeat=len(values)))
    for way in ways:
        answers = [
            sum(v for v, choice in zip(values, way, strict=True) if members(block, choice))
            for block in range(m.blocks)
        ]
        total += m.aggregator.probabilities(np.clip(answers, 0, 6)) / len(ways)
    return total


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from([0.3, 1.0, 2.5]),
    st.lists(st.integers(-9, 9), max_size=4),
    st.integers(-9, 9),
    st.integers(-9, 9),
)
def test_one_record_more_or_another_costs_at_most_epsilon(epsilon, values, one, other):
    m = make(epsilon=epsilon)
    p, q, r = law(m, values), law(m, [*values, one]), law(m, [*values, other])
    for a, b in ((p, q), (q, r)):
        assert smallest_epsilon(a, b) <= m.privacy.epsilon() * (1 + 1e-9)
    assert m.privacy.epsilon() == epsilon


def test_a_mutant_that_gives_every_block_the_record_is_caught():
    """The bug: samples drawn anew for each block, so that one record is in many of them."""
    m = make(epsilon=1.0, blocks=9)
    honest, mutant = (
        max(smallest_epsilon(law(m, [9] * n, rule), law(m, [0] + [9] * (n - 1), rule)) for n in (1, 2))
        for rule in (lambda block, choice: block == choice, lambda block, choice: True)
    )
    assert honest <= 1 + 1e-9 < 2 < mutant


@given(st.lists(st.floats(-50, 50), min_size=5, max_size=5), st.floats(-50, 50), st.integers(0, 4))
def test_one_answer_moves_the_sum_by_at_most_what_the_mean_is_calibrated_for(answers, new, place):
    m = make(blocks=5, low=-3.0, high=7.0, aggregate="mean")
    other = [*answers[:place], new, *answers[place + 1 :]]
    one, two = (int(m.interval.steps(x, "test", public=True).sum()) for x in (answers, other))
    assert abs(one - two) <= m.noise.sensitivity_in_steps
    assert m.privacy.epsilon() == 1.0


@pytest.mark.statistical
def test_every_unit_is_in_one_block_and_every_block_is_as_likely():
    """Fails by chance below 1e-7."""
    m = make(blocks=4)
    seen = []
    for _ in range(400):
        parts = m.partition(list("abcdefgh"))
        assert sorted(np.concatenate(parts).tolist()) == list(range(8))
        seen += [number for number, part in enumerate(parts) for place in part.tolist() if place in (0, 7)]
    assert surprise(seen, [0.25] * 4) > FAILURE
    names = ["ann", "bob", "ann", "cid", "bob", "ann"]
    for parts in (m.partition(range(6), units=names) for _ in range(20)):
        where = [{n for n, part in enumerate(parts) for i in part if names[i] == name} for name in names]
        assert all(len(blocks) == 1 for blocks in where)


@pytest.mark.statistical
def test_released_medians_follow_the_law_of_the_partitions():
    """In-process blocks, so that many fit. Fails by chance below 1e-7."""
    values = [5, 2, 1]
    m = make(epsilon=2.0)
    seen = []
    for _ in range(3_000):
        answers = [sum(values[i] for i in part.tolist()) for part in m.partition(values)]
        seen.append(m.combine(answers))
    assert surprise(seen, law(m, values)) > FAILURE


def misbehave(block):
    """What the block says is what it does."""
    match block[0]:
        case "raise":
            raise KeyError(block)
        case "crash":
            ctypes.string_at(0)
        case "abort":
            os.abort()
        case "exit":
            raise SystemExit(3)
        case "exit hard":
            os._exit(0)
        case "sleep":
            time.sleep(10**6)
        case "burn":
            while True:
                pass
        case "hoard":
            return float(len(np.ones(2**30)))
        case "nan":
            return math.nan
        case "text":
            return "3"
        case "nothing":
            return None
        case "array":
            return np.arange(3)
        case "big":
            return 10**400
        case "child":
            if os.fork() == 0:
                time.sleep(10**6)
            return 4.0
        case "print":
            print("secret", block, flush=True)
            os.write(2, b"secret\n")
            return 5
        case "infinity":
            return math.inf
    return block[0]


ACTS = ["raise", "crash", "abort", "exit", "exit hard", "hoard", "nan", "text", "nothing", "array", "big"]


def test_a_block_that_misbehaves_counts_as_the_default_and_no_other_block_suffers(capfd):
    blocks = [[act] for act in [*ACTS, "sleep", "child", "print", "infinity", np.float32(2.5), 7, True]]
    limits = Limits(seconds=20, patience=3.0, megabytes=300)
    results = run_blocks(misbehave, blocks, limits, workers=4, start="fork", default=-1.0)
    assert results == [-1.0] * (len(ACTS) + 1) + [4.0, 5.0, math.inf, 2.5, 7.0, 1.0]
    assert capfd.readouterr() == ("", "")


def test_a_block_that_burns_the_processor_is_ended_by_its_own_time():
    limits = Limits(seconds=1, patience=600.0, megabytes=300)
    results = run_blocks(misbehave, [["burn"], [3]], limits, workers=2, start="fork", default=-1.0)
    assert results == [-1.0, 3.0]


KEPT: list[int] = []


def keeps(block):
    KEPT.append(1)
    return len(KEPT)


def test_nothing_is_carried_from_one_block_to_the_next():
    limits = Limits(5, 30.0, 300)
    assert run_blocks(keeps, [[0]] * 6, limits, workers=2, start="fork", default=0.0) == [1.0] * 6
    assert KEPT == []


def children() -> set[str]:
    """The processes that this one has started and that are not done, whoever started them."""
    tasks = Path("/proc/self/task").glob("*/children")
    return {child for task in tasks for child in task.read_text().split()}


def test_no_process_is_left_when_the_caller_is_interrupted():
    """The blocks that run are ended when collecting their answers fails."""

    class Interrupted(list):
        def __iter__(self):
            yield ["sleep"]
            raise KeyboardInterrupt

    before = children()
    with pytest.raises(KeyboardInterrupt):
        run_blocks(misbehave, Interrupted([1, 2]), Limits(5, 60.0, 300), workers=2, start="fork", default=0.0)
    assert children() <= before


def test_a_release_never_raises_whatever_the_blocks_do():
    m = make(misbehave, blocks=4, low=0.0, high=10.0, patience=20, megabytes=300)
    for data in ([["raise"]] * 3, [], [["nan"]] * 9, [["infinity"]] * 9):
        assert 0 <= m.release(data) <= 10
    assert m.answers([]) == [5.0] * 4


def test_a_statistic_of_real_size_is_found():
    rng = np.random.default_rng(1)
    values = rng.normal(50, 10, 4_000)
    for aggregate in ("median", "mean"):
        m = SubsampleAndAggregate(
            lambda block: float(np.std(block)), 5.0, blocks=40, low=0, high=100.0, aggregate=aggregate
        )
        assert abs(m.release(values) - 10) < 3
    assert m.halfwidth(0.95) == pytest.approx(100 / 5 * math.log(20) / 40, rel=1e-2)
    whole = make(len, 50.0, blocks=4, low=0, high=5000)
    assert type(whole.release(values)) is int


def test_an_importable_function_runs_in_fresh_processes():
    m = make(statistics.fmean, blocks=1, low=0.0, high=10.0, start="spawn")
    assert m.answers([3.0] * 40) == [3.0]


@pytest.mark.parametrize(
    "table",
    [
        [1, 2, 3],
        (1, 2, 3),
        np.array([1, 2, 3]),
        pd.Series([1, 2, 3], index=[7, 7, 7]),
        pl.Series([1, 2, 3]),
        pa.array([1, 2, 3]),
    ],
)
def test_rows_of_every_kind_of_table_are_shared_out(table):
    m = make(lambda block: float(sum(x.as_py() if hasattr(x, "as_py") else x for x in block)), blocks=2)
    assert sum(m.answers(table)) == 6
    frame = {"x": [1, 2, 3], "y": [0, 0, 1]}
    if table is not None and isinstance(table, pd.Series | pl.Series):
        frames = pd.DataFrame(frame) if isinstance(table, pd.Series) else pl.DataFrame(frame)
        assert sum(make(lambda block: float(block["x"].sum()), blocks=2).answers(frames)) == 6


@pytest.mark.parametrize(
    "call",
    [
        lambda: make("sum"),
        lambda: make(epsilon=0),
        lambda: make(blocks=0),
        lambda: make(blocks=2.5),
        lambda: make(low=6),
        lambda: make(high=math.inf),
        lambda: make(default=7),
        lambda: make(default=math.nan),
        lambda: make(aggregate="mode"),
        lambda: make(seconds=0),
        lambda: make(seconds=0.5),
        lambda: make(patience=0),
        lambda: make(megabytes=0),
        lambda: make(workers=0),
        lambda: make(start="thread"),
        lambda: make(lambda block: 1, start="spawn"),
        lambda: make().release(5),
        lambda: make().release("abc"),
        lambda: make().release({"a": [1]}),
        lambda: make().release(np.array(3)),
        lambda: make().release([1, 2], units=[1]),
        lambda: make().release([1, 2], units="ab"),
        lambda: make().release([1, 2], units=np.array([[1], [2]])),
        lambda: make().combine([1.0]),
    ],
)
def test_bad_input_gets_one_sentence(call):
    with pytest.raises(InvalidInput) as caught:
        call()
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)


def test_what_is_wrong_with_the_machine_is_said_before_data_are_read(monkeypatch):
    # The worker of a pool may not have children of its own.
    monkeypatch.setitem(multiprocessing.current_process()._config, "daemon", True)
    with pytest.raises(IncrowdError, match="No process could be started"):
        make().release([1, 2, 3])
