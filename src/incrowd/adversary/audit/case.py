"""One case to audit: a mechanism, its claim and two neighbours. Broken and real ones share this form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from incrowd.adversary.audit.auditor import LEAST_SAMPLES, Audit, audit
from incrowd.adversary.audit.proofs import Proof


@dataclass(frozen=True)
class Case:
    """A mechanism with its claim and a pair of neighbours that should tell."""

    name: str
    about: str
    """What is wrong with it, or what is audited, in one sentence."""
    mechanism: Any
    """Whatever `audit` takes."""
    x: Any
    x_prime: Any
    epsilon: float
    delta: float = 0.0
    samples: int = 20_000
    """Runs on either neighbour that suffice for the verdict."""
    proof: Callable[[], Proof] | None = None
    """An exact check over many pairs, where sampling sees less than half of the claim."""

    def audited(self, *, share: float = 1.0, confidence: float = 0.999) -> Audit:
        """The audit of this case, with a share of its samples."""
        return audit(
            self.mechanism,
            self.x,
            self.x_prime,
            epsilon=self.epsilon,
            delta=self.delta,
            samples=max(LEAST_SAMPLES, int(self.samples * share)),
            confidence=confidence,
        )
