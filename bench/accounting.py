"""One more query: what the filter and the accountant take, as ratios to dp-accounting's PLD in the same run.

Each round asks the same question of all three after a history of 100, 1,000 and 10,000 queries (a third each
of Laplace, Gaussian and randomized response, epsilon or mu 0.1 each): write one more release down
and give epsilon at delta = 1e-6 (the filter: accept or refuse). Medians of interleaved rounds. Where
dp-accounting is not installed its column is empty: pip install dp-accounting.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from incrowd.privacy import Account, Filter, gaussian, laplace, pure

DELTA = 1e-6
HISTORIES = (100, 1_000, 10_000)
ROUNDS = 15


def seconds(job: Callable[[], object], repeat: int = 1) -> float:
    start = time.perf_counter()
    for _ in range(repeat):
        job()
    return (time.perf_counter() - start) / repeat


def filter_job(history: int) -> Callable[[], object]:
    budget = Filter(1e6, DELTA)
    ask = laplace(0.1)
    for _ in range(history):
        budget.reserve(ask)
    return lambda: budget.reserve(ask)


def accountant_job(history: int) -> Callable[[], object]:
    account = Account(DELTA)
    third = history // 3
    account.add(laplace(0.1) * third + gaussian(0.1) * third + pure(0.1) * third)
    account.epsilon()
    ask = laplace(0.1)

    def one_more() -> float:
        account.add(ask)
        return account.epsilon()

    return one_more


def peer_job(history: int) -> Callable[[], object] | None:
    try:
        from dp_accounting import dp_event
        from dp_accounting.pld.pld_privacy_accountant import PLDAccountant
    except ImportError:
        return None
    third = history // 3
    peer = PLDAccountant()
    peer.compose(dp_event.LaplaceDpEvent(10.0), third)
    peer.compose(dp_event.GaussianDpEvent(10.0), third)
    peer.compose(dp_event.DiscreteLaplaceDpEvent(0.1, 1), third)

    def one_more() -> float:
        peer.compose(dp_event.LaplaceDpEvent(10.0))
        return float(peer.get_epsilon(DELTA))

    return one_more


def main() -> None:
    print("one more query          filter     accountant   dp-accounting   filter/peer   accountant/peer")
    for history in HISTORIES:
        jobs = {
            "filter": filter_job(history),
            "accountant": accountant_job(history),
            "peer": peer_job(history),
        }
        times: dict[str, list[float]] = {name: [] for name in jobs}
        for _ in range(ROUNDS):
            for name, job in jobs.items():
                if job is not None:
                    times[name].append(seconds(job, 200 if name == "filter" else 1))
        middle = {name: statistics.median(durations) for name, durations in times.items() if durations}
        row = f"history {history:>6,}   {middle['filter'] * 1e6:9.2f} us {middle['accountant'] * 1e3:9.3f} ms"
        if "peer" in middle:
            ratios = [middle[name] / middle["peer"] for name in ("filter", "accountant")]
            row += f"   {middle['peer'] * 1e3:9.2f} ms   {ratios[0]:11.2e}   {ratios[1]:15.4f}"
        print(row)


if __name__ == "__main__":
    main()
