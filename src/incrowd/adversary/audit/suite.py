"""The auditor over everything: every mutant must be caught, no real mechanism and no curator accused.

An audit that sees little proves little. So a real line passes only if at least half of its claim is seen to
be spent, of epsilon or of delta: by the audit, or by an exact check of many pairs beside it (`proofs`).

Each audit is wrong with probability at most 1e-5, so an accusation in the whole table is a bug and not bad
luck (the chance that all are right is above 99.9%). Audits run in processes of their own, on all cores.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any, Literal

from incrowd.adversary.audit.auditor import Audit
from incrowd.adversary.audit.case import Case
from incrowd.adversary.audit.proofs import Proof

Kind = Literal["mutant", "mechanism", "curator"]
CONFIDENCE = 1 - 1e-5
QUICK: dict[Kind, float] = {"mutant": 1.0, "mechanism": 0.08, "curator": 0.03}
"""The share of its samples that a case has in a quick run; mutants need theirs to be caught."""


ENOUGH = 0.5
"""The share of its claim that a real line must be seen to spend, by samples or exactly."""


@dataclass(frozen=True)
class Line:
    """One case and what its audit found, and its exact check if it has one."""

    kind: Kind
    name: str
    about: str
    audit: Audit
    seconds: float
    proof: Proof | None = None
    whole: bool = True
    """Whether the case had all its samples, so that a low share means a weak case."""

    @property
    def guilty(self) -> bool:
        """Whether the claim was refuted, by samples or exactly."""
        return self.audit.verdict == "violates" or not (self.proof is None or self.proof.holds)

    @property
    def how(self) -> str:
        """What the share rests on."""
        return self.proof.how if self.proof else "audited"

    @property
    def share(self) -> float:
        """The share of the claim seen to be spent, by the exact check or by samples, in epsilon or delta."""
        if self.proof:
            return self.proof.share
        delta = self.audit.delta
        return max(self.audit.closeness, self.audit.delta_interval[0] / delta if delta else 0.0)

    @property
    def weak(self) -> bool:
        """Whether too little of a real mechanism's claim was seen for the line to mean anything."""
        return self.kind != "mutant" and self.whole and self.share < ENOUGH

    @property
    def right(self) -> bool:
        """Whether a mutant was caught, or a real mechanism was tested well enough and not accused."""
        return self.guilty if self.kind == "mutant" else not (self.guilty or self.weak)

    @property
    def word(self) -> str:
        """The outcome in a word."""
        if self.kind == "mutant":
            return "caught" if self.right else "ESCAPED"
        return "ACCUSED" if self.guilty else "WEAK" if self.weak else "consistent"

    def to_dict(self) -> dict[str, Any]:
        """The line as plain values."""
        told = {"kind": self.kind, "name": self.name, "about": self.about, "how": self.how}
        seen = {"share": self.share, "pairs": self.proof.pairs if self.proof else 1}
        return {
            **told,
            **seen,
            "right": self.right,
            "seconds": round(self.seconds, 2),
            **self.audit.to_dict(),
        }


def cases(kind: Kind) -> Sequence[Case]:
    """All cases of a kind."""
    # Imported here, so that a process that audits mutants need not load the curator.
    if kind == "mutant":
        from incrowd.adversary.mutants import MUTANTS

        return MUTANTS
    if kind == "mechanism":
        from incrowd.adversary.audit.real import REAL

        return REAL
    from incrowd.adversary.audit.curators import CURATORS

    return CURATORS


def one(kind: Kind, place: int, share: float, confidence: float) -> Line:
    """The audit of one case, here and now."""
    case = cases(kind)[place]
    started = time.perf_counter()
    result = case.audited(share=share, confidence=confidence)
    proof = case.proof() if case.proof else None
    return Line(
        kind, case.name, case.about, result, time.perf_counter() - started, proof=proof, whole=share >= 1
    )


def run(
    wanted: Sequence[tuple[Kind, int, float]], *, confidence: float = CONFIDENCE, workers: int | None = None
) -> Iterator[Line]:
    """The audits of (kind, place, share), each as it is done, in `workers` processes (one for each core)."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    # Spawned, because a forked child would share the state of its parent.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers or cores, mp_context=context) as pool:
        jobs = [pool.submit(one, kind, place, share, confidence) for kind, place, share in wanted]
        try:
            for job in as_completed(jobs):
                yield job.result()
        finally:
            pool.shutdown(cancel_futures=True)  # where one fails, the others need not be waited for


def everything(quick: bool = False) -> list[tuple[Kind, int, float]]:
    """All cases with their shares, the slow ones first."""
    kinds: tuple[Kind, ...] = ("curator", "mechanism", "mutant")
    return [
        (kind, place, QUICK[kind] if quick else 1.0) for kind in kinds for place in range(len(cases(kind)))
    ]


def summary(lines: Sequence[Line]) -> str:
    """The table in a sentence."""
    mutants = [line for line in lines if line.kind == "mutant"]
    others = [line for line in lines if line.kind != "mutant"]
    caught = sum(line.right for line in mutants)
    accused, weak = sum(line.guilty for line in others), sum(line.weak for line in others)
    proofs = [line.proof for line in others if line.proof]
    return (
        f"{caught} of {len(mutants)} mutants caught; {accused or 'none'} of {len(others)} real ones accused "
        f"and {weak or 'none'} too weakly seen, with {sum(2 * line.audit.samples for line in lines):,} runs; "
        f"{len(proofs)} are checked exactly on {sum(proof.pairs for proof in proofs):,} pairs besides."
    )
