"""What every mechanism is: a release, the guarantee that comes with it, and free post-processing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from incrowd.noise import Source
from incrowd.privacy import Guarantee


class Mechanism(ABC):
    """A randomised algorithm with its guarantee.

    The guarantee holds for one release, for neighbouring inputs within the sensitivity that the mechanism
    was given. Releasing twice costs twice: add the guarantees. An input that the mechanism refuses (text,
    NaN, a number beyond its range) is refused before a random bit is drawn; callers who serve others must
    bound the data first, for a refusal that depends on the data tells something about it.
    """

    @property
    @abstractmethod
    def privacy(self) -> Guarantee:
        """What one release guarantees."""

    @abstractmethod
    def release(self, value: Any, source: Source | None = None) -> Any:
        """Release the value privately; `source` replaces the system's random bits in tests only."""

    def then(self, function: Callable[[Any], Any]) -> Processed:
        """This mechanism followed by a function of its output alone.

        Theorem (post-processing; Dwork, McSherry, Nissim, Smith 2006). If M satisfies a guarantee and f
        sees nothing but M's output, f(M(.)) satisfies the same one: every event {f(M) in S} is the event
        {M in f^-1(S)}. Condition: f does not look at the data again.
        """
        return Processed(self, function)


@dataclass(frozen=True)
class Processed(Mechanism):
    """A mechanism whose output is passed through a function; its guarantee is unchanged."""

    mechanism: Mechanism
    function: Callable[[Any], Any]

    @property
    def privacy(self) -> Guarantee:
        """The guarantee of the mechanism beneath: post-processing is free."""
        return self.mechanism.privacy

    def release(self, value: Any, source: Source | None = None) -> Any:
        """Release the value and apply the function to what was released."""
        return self.function(self.mechanism.release(value, source))
