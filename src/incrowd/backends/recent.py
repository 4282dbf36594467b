"""Remembers what was made of the last few objects, so that a statement is built and rendered once.

A question's statement is needed for its proof and for its run. Comparing trees costs as much as rendering
them, and hashes of trees may collide; so an object is known again only if it is the same object.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Hashable
from typing import Concatenate, ParamSpec, TypeVar, cast

_MOST_KEPT = 8
_Subject = TypeVar("_Subject")
_Rest = ParamSpec("_Rest")
_Result = TypeVar("_Result")


def recent(
    make: Callable[Concatenate[_Subject, _Rest], _Result],
) -> Callable[Concatenate[_Subject, _Rest], _Result]:
    """Makes a function remember its last results: the first argument by identity, the others by value.

    For functions without effects, of arguments that nobody changes afterwards.

    >>> double = recent(lambda values: [2 * value for value in values])
    >>> numbers = [1, 2]
    >>> double(numbers) is double(numbers), double(numbers) is double([1, 2])
    (True, False)
    """
    # The subject is kept beside the result: as long as it lives, no other object has its id.
    kept: dict[Hashable, tuple[_Subject, _Result]] = {}
    lock = threading.Lock()

    @functools.wraps(make)
    def remembered(subject: _Subject, /, *rest: _Rest.args, **named: _Rest.kwargs) -> _Result:
        key = (id(subject), rest, tuple(named.items()))
        known = kept.get(key)
        if known is None:
            known = subject, make(subject, *rest, **named)
            with lock:
                if len(kept) >= _MOST_KEPT:
                    del kept[next(iter(kept))]
                kept[key] = known
        return known[1]

    return cast("Callable[Concatenate[_Subject, _Rest], _Result]", remembered)
