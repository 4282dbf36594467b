"""How a mechanism shows itself: as the call that makes it, and in a notebook with what it promises.

Parameters appear as they were given, without those left at their defaults. A fraction is shown as the
shortest text that stands for it; one of many digits is rounded, and then the text makes a mechanism close to
this one and not equal to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from incrowd.mechanisms.parameters import DECIMALS
from incrowd.noise.readings import (
    NUMBERS,
    as_fraction,
    plain,
    shown,
)

ALWAYS = frozenset({"sensitivity"})
"""Shown also at its default: it says how far one person moves the value, and whether integers come out."""
CONFIDENCE = 0.95
_DIGITS = 20


def call_text(kind: str, parameters: Mapping[str, Any], defaults: Mapping[str, Any]) -> str:
    """The call that makes a mechanism.

    >>> call_text("Laplace", {"epsilon": Fraction(1, 10), "size": 1}, {"size": 1})
    'Laplace(epsilon=0.1)'
    """
    told = (
        f"{name}={value_text(name, value)}"
        for name, value in parameters.items()
        if name in ALWAYS or name not in defaults or not _same(value, defaults[name])
    )
    return f"{kind}({', '.join(told)})"


def value_text(name: str, value: Any) -> str:
    """A parameter as Python text, short enough to read."""
    value = plain(value)
    if isinstance(value, NUMBERS) and not isinstance(value, bool):
        return _number_text(value, name in DECIMALS)
    if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str):
        items = [value_text(name, item) for item in value]
        is_tuple = isinstance(value, tuple)
        return f"({', '.join(items)}{',' * (len(items) == 1)})" if is_tuple else f"[{', '.join(items)}]"
    if callable(value) and hasattr(value, "__qualname__"):
        return str(value.__qualname__)
    return repr(value)


def _number_text(value: Any, is_decimal: bool) -> str:
    if isinstance(value, float | np.floating):
        # A float32 as the number that the mechanism reads: 0.1 for privacy, all its bits for data.
        return str(value) if is_decimal else repr(float(value))
    number = as_fraction(value)
    if number.denominator == 1 and not isinstance(value, Decimal):
        return shown(number.numerator)
    try:
        near = float(number)
    except OverflowError:
        return shown(number)
    if (Fraction(repr(near)) if is_decimal else Fraction(near)) == number:
        return repr(near)
    if Fraction(near) == number:
        return f"Fraction({near!r})"
    if len(text := repr(value)) <= _DIGITS + len("Fraction(, )"):
        return text
    return repr(near)


def _same(value: Any, default: Any) -> bool:
    """Whether a parameter says what its default says; 1.0 does not say what 1 does."""
    return value is default or (type(value) is type(default) and bool(np.all(value == default)))


def html_text(
    call: str, summary: str, halfwidth: Callable[..., Any] | None, confidence: float = CONFIDENCE
) -> str:
    """A mechanism in a notebook: the call, the guarantee of one release, and its half-width in words."""
    import html  # a notebook has it already
    import inspect

    lines = [f"<code>{html.escape(call)}</code>", f"One release guarantees {html.escape(summary)}."]
    if halfwidth is not None and _needs_only_a_confidence(halfwidth):
        meaning = (inspect.getdoc(halfwidth) or "").partition("\n")[0]
        width = f"Half-width at {confidence:.0%} confidence: {halfwidth(confidence):.6g}."
        lines.append(f"{width} {html.escape(meaning)}".strip())
    return "<br>".join(lines)


def _needs_only_a_confidence(halfwidth: Callable[..., Any]) -> bool:
    import inspect

    _, *others = inspect.signature(halfwidth).parameters.values()
    return all(other.default is not other.empty for other in others)
