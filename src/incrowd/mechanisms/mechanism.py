"""What every mechanism is: parameters, a release, the guarantee that comes with it, post-processing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any

import numpy as np

from incrowd.mechanisms.parameters import DECIMALS, is_whole_type
from incrowd.mechanisms.showing import call_text, html_text
from incrowd.noise import Source
from incrowd.noise.readings import NUMBERS, binary, decimal
from incrowd.privacy import Guarantee


@dataclass(frozen=True, eq=False, repr=False)
class Mechanism(ABC):
    """A randomised algorithm with its guarantee.

    A mechanism is a frozen dataclass. Its fields are the parameters as the caller gave them; everything that
    follows from them (an exact scale, a grid) is a property. Two mechanisms are equal when their parameters
    are.

    The guarantee holds for one release, for neighbouring inputs within the sensitivity that the mechanism
    was given. Releasing twice costs twice: add the guarantees.

    No record makes a release raise, because the error would tell about the record. Values beyond the range
    of a mechanism are clamped, and missing values (None, NaN) are left out or count as 0
    (`incrowd.mechanisms.records`). A release refuses only mistakes of the program, before it draws a random
    bit: text where a number is due, a table of the wrong shape, a negative count.
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
        sees nothing but the output of M, then f(M(.)) satisfies the same guarantee: every event
        {f(M) in S} is the event {M in f^-1(S)}. Condition: f does not look at the data again.
        """
        return Processed(self, function)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self is other or (bool(fields(self)) and self._key() == other._key())

    def __hash__(self) -> int:
        return hash((type(self), self._key())) if fields(self) else object.__hash__(self)

    def __repr__(self) -> str:
        ordered = sorted(fields(self), key=lambda field: field.kw_only is True)
        parameters = {field.name: getattr(self, field.name) for field in ordered}
        defaults = {field.name: field.default for field in ordered if field.default is not MISSING}
        return call_text(type(self).__name__, parameters, defaults)

    def _repr_html_(self) -> str:
        return html_text(repr(self), self.privacy.summary(), getattr(self, "halfwidth", None))

    def __getstate__(self) -> dict[str, Any]:
        """Only the parameters travel and are copied; what follows from them is worked out anew."""
        names = {field.name for field in fields(self)}
        return {name: value for name, value in vars(self).items() if name in names or not names}

    def _key(self) -> tuple[Any, ...]:
        """The parameters in a form in which equal ones compare equal."""
        return tuple(_comparable(field.name, getattr(self, field.name)) for field in fields(self))


def _comparable(name: str, value: Any) -> Any:
    """A parameter as something hashable.

    Numbers compare as the mechanism reads them. A sensitivity of 1 releases integers and one of 1.0 reals,
    so numbers that say something about data also compare by whether they were written as integers.
    """
    if isinstance(value, NUMBERS) and not isinstance(value, bool | np.bool_):
        return decimal(value, name) if name in DECIMALS else (binary(value, name), is_whole_type(value))
    if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str):
        return tuple(_comparable(name, item) for item in value)
    return value


@dataclass(frozen=True, eq=False, repr=False)
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
