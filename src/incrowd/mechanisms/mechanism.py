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
    was given. Releasing twice costs twice: add the guarantees.

    No record makes a release raise, for that would tell of it: values beyond a mechanism's range are clamped,
    what is missing (None, NaN) is left out or counts as 0 (`incrowd.mechanisms.records`). What is refused,
    before a random bit is drawn, is what the program decides: the kind of a value (text where a number is
    due), the shape of a table, a negative count.
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
