"""What an ask costs in the ledger, and that it does not depend on how much was asked before.

    python bench/ledger.py [--asks 10000]

Two ledgers are asked in turn, one of ten asks and one of many, so that whatever else the machine
does weighs on both alike. Times are medians; the ratio is what counts (target: at most 2).
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from incrowd.catalog import Catalog, check
from incrowd.curator.ledger import Ledger
from incrowd.errors import BudgetExceeded
from incrowd.privacy import laplace, pure

ROUNDS = 200
ANSWER = bytes(2000)


def catalog() -> Catalog:
    return check(
        {
            "sources": {"s": {"csv": "a.csv"}},
            "tables": {"t": {"unit": "row", "columns": {"a": {"type": "integer"}}}},
            "budget": {"epsilon": 1e6, "delta": 1e-6},
            "groups": {"staff": {"epsilon": 1e6, "members": ["ana"]}},
            "analysts": {"ana": {"epsilon": 1e6, "per_day": {"epsilon": 1e6}}},
        }
    )


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def ask(ledger: Ledger, number: int) -> None:
    ledger.reserve("ana", laplace(0.1), f"q{number}", "v")


def ask_and_record(ledger: Ledger, number: int) -> None:
    paid = ledger.reserve("ana", laplace(0.1), f"q{number}", "v")
    ledger.record(paid, ANSWER)


def refuse(ledger: Ledger, _number: int) -> None:
    try:
        ledger.reserve("ana", pure(1e9), "q", "v")
    except BudgetExceeded:
        return
    raise AssertionError("the ask should not fit")


def recall(ledger: Ledger, _number: int) -> None:
    if ledger.recall("q3", "v", "ana") is None:
        raise AssertionError("the answer should be there")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--asks", type=int, default=10_000)
    asks = parser.parse_args().asks
    with tempfile.TemporaryDirectory() as folder:
        young, old = (Ledger.found(Path(folder) / f"{name}.ledger", catalog()) for name in ("young", "old"))
        for number in range(10):
            ask_and_record(young, number)
        building = seconds(lambda: [ask_and_record(old, number) for number in range(asks)])
        kinds = {"reserve": ask, "reserve + record": ask_and_record, "refused": refuse, "recall": recall}
        print(f"ledger of about 10 asks against one of {asks:,}, medians of {ROUNDS} in turn")
        print(f"{'':18}{'young ms':>10}{'old ms':>10}{'ratio':>8}")
        for name, work in kinds.items():
            times: dict[str, list[float]] = {"young": [], "old": []}
            for number in range(ROUNDS):
                times["young"].append(seconds(lambda: work(young, 10**6 + number)))  # noqa: B023
                times["old"].append(seconds(lambda: work(old, 10**6 + number)))  # noqa: B023
            first, last = statistics.median(times["young"]), statistics.median(times["old"])
            print(f"{name:18}{first * 1e3:10.2f}{last * 1e3:10.2f}{last / first:8.2f}")
        verified = seconds(lambda: old.verify().require())
        rate = old.head().seq / verified
        print(f"building: {asks / building:,.0f} asks/s; verify: {verified:.2f} s, {rate:,.0f} entries/s")
        young.close()
        old.close()


if __name__ == "__main__":
    main()
