"""How fast the exact samplers are, as ratios to NumPy's inexact ones measured in the same run.

Each round times every contestant once, so that a busy machine slows all of them alike; what is printed are
ratios of medians over the rounds. OpenDP's column appears where it is installed.

    python bench/noise.py [--draws N] [--rounds N]
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from incrowd import noise

Contestant = Callable[[], object]
SCALES = [1, 10, 1_000, 1_000_000]


def medians(contestants: dict[str, Contestant], rounds: int) -> dict[str, float]:
    """Seconds for each contestant: the median of interleaved runs, after one run to warm up."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(rounds + 1):
        for name, run in contestants.items():
            start = time.perf_counter()
            run()
            if number:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def opendp_draw(kind: str, scale: float, draws: int) -> Contestant:
    """OpenDP's noise on a vector of integers (of fewer draws; the caller scales the time up)."""
    import opendp.prelude as dp  # type: ignore[import-not-found, unused-ignore]

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    if kind == "gaussian":
        space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    make = dp.m.make_laplace if kind == "laplace" else dp.m.make_gaussian
    mechanism = make(*space, scale=float(scale))
    zeros = [0] * draws
    return lambda: mechanism(zeros)


def arrays(draws: int, rounds: int) -> None:
    """Whole arrays, against numpy.random.Generator."""
    generator = np.random.default_rng()
    peer = importlib.util.find_spec("opendp") is not None
    part = max(draws // 20, 1)
    laws = [
        ("laplace", noise.laplace_sampler, generator.laplace, 10),
        ("gaussian", noise.gaussian_sampler, generator.normal, 40),
    ]
    print(f"{draws:,} draws, medians of {rounds} interleaved rounds")
    print(f"{'law':<10}{'scale':>10}{'numpy ms':>10}{'incrowd ms':>12}{'ratio':>8}{'target':>8}", end="")
    print(f"{'opendp ratio':>14}" if peer else "")
    for law, ours, theirs, target in laws:
        for scale in SCALES:
            contestants: dict[str, Contestant] = {
                "numpy": lambda theirs=theirs, scale=scale: theirs(0.0, scale, draws),  # type: ignore[misc]
                "incrowd": lambda ours=ours, scale=scale: ours(scale, draws),  # type: ignore[misc]
            }
            if peer:
                contestants["opendp"] = opendp_draw(law, scale, part)
            taken = medians(contestants, rounds)
            ratio = taken["incrowd"] / taken["numpy"]
            row = f"{law:<10}{scale:>10,}{taken['numpy'] * 1e3:>10.2f}{taken['incrowd'] * 1e3:>12.2f}"
            row += f"{ratio:>8.2f}{target:>8}"
            print(row + (f"{taken['opendp'] * draws / part / taken['numpy']:>14,.0f}" if peer else ""))


def scalars(rounds: int) -> None:
    """Single draws, in microseconds."""
    samplers: dict[str, Contestant] = {
        "discrete_laplace(10)": lambda: noise.laplace_sampler(10),
        "discrete_laplace(1e12)": lambda: noise.laplace_sampler(1e12),
        "discrete_laplace(1/3)": lambda: noise.laplace_sampler(Fraction(1, 3)),
        "discrete_gaussian(10)": lambda: noise.gaussian_sampler(10),
        "discrete_gaussian(1e12)": lambda: noise.gaussian_sampler(1e12),
        "geometric(10)": lambda: noise.geometric(10),
        "bernoulli(0.3)": lambda: noise.bernoulli(0.3),
        "bernoulli_exp(0.3)": lambda: noise.bernoulli_exp(0.3),
        "categorical of 10": lambda: noise.categorical([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
        "uniform(10)": lambda: noise.uniform(10),
    }
    repeats = 500

    def repeated(draw: Contestant) -> Contestant:
        def run() -> None:
            for _ in range(repeats):
                draw()

        return run

    taken = medians({name: repeated(draw) for name, draw in samplers.items()}, rounds)
    print(f"\nA single draw, microseconds (target: below 50), median of {rounds} rounds of {repeats} draws")
    for name, seconds in taken.items():
        print(f"{name:<26}{seconds / repeats * 1e6:>8.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    arrays(options.draws, options.rounds)
    scalars(options.rounds)


if __name__ == "__main__":
    main()
