"""Where random bits come from. A source hands out uniformly random unsigned integers and nothing else.

The system source asks the operating system's generator on every call and keeps no bits of its own, so
there is nothing that two threads could share or that a forked child could repeat. A seeded source makes
tests and demos repeatable; it protects nobody.
"""

from __future__ import annotations

import os
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidInput
from incrowd.noise.readings import shown


class Source(Protocol):
    """Anything that gives independent, uniformly random unsigned integers."""

    def words(self, count: int, dtype: type[np.unsignedinteger[Any]]) -> NDArray[Any]:
        """Return `count` independent integers, each uniform over the whole range of `dtype`."""
        ...


class SystemSource:
    """Bits from the operating system's cryptographic generator; without state, hence safe to share."""

    def words(self, count: int, dtype: type[np.unsignedinteger[Any]]) -> NDArray[Any]:
        """Return `count` fresh integers of `dtype`."""
        return np.frombuffer(os.urandom(count * dtype().itemsize), dtype=dtype)


class SeededSource:
    """A repeatable source for tests and demos only: whoever knows the seed can subtract the noise.

    >>> a, b = SeededSource(7), SeededSource(7)
    >>> bool((a.words(4, np.uint32) == b.words(4, np.uint32)).all())
    True
    """

    def __init__(self, seed: int) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise InvalidInput(f"The seed must be a whole number of at least 0, not {shown(seed)}.")
        self._generator = np.random.Generator(np.random.PCG64(int(seed)))

    def words(self, count: int, dtype: type[np.unsignedinteger[Any]]) -> NDArray[Any]:
        """Return the next `count` integers of `dtype`."""
        return self._generator.integers(0, np.iinfo(dtype).max, size=count, dtype=dtype, endpoint=True)


SYSTEM: Source = SystemSource()


def source_of(source: Source | None) -> Source:
    """The source that a caller gave, or the system's; InvalidInput for what gives no bits."""
    if source is None:
        return SYSTEM
    if not callable(getattr(source, "words", None)):
        raise InvalidInput("source must be a source of random bits, such as SeededSource(7), or be left out.")
    return source
