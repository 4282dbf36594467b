"""What every declared thing has in common: frozen, strict about its fields, precise about its faults.

A fault found while a declaration is checked carries the rest of the path to it, so that the reader of the
owner's file is sent to `tables.people.columns.age.bounds` and not to the column as a whole.
"""

from __future__ import annotations

import difflib
import math
import numbers
import re
from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator
from pydantic_core import PydanticCustomError

from incrowd.catalog.names import fold

PLACEHOLDER = "FILL"
"""What a proposed file says where only the owner knows the answer."""


def is_placeholder(value: object) -> bool:
    """Whether a value was left for the owner to fill in."""
    return isinstance(value, str) and value == PLACEHOLDER


def fault(message: str, *path: str | int) -> PydanticCustomError:
    """The error for a fault at `path` below the thing being checked."""
    # Pydantic formats messages like str.format: what the owner wrote must not be read as a field.
    return PydanticCustomError("fault", "{message}", {"message": message, "path": path})


def nearest(word: object, known: Iterable[str]) -> str:
    """A clause that points to the nearest of `known`, or lists them.

    >>> nearest("bound", ["bounds", "type"])
    'perhaps you mean bounds'
    >>> nearest("zzz", ["bounds", "type"])
    'choose from bounds, type'
    """
    names = list(known)
    folded = {fold(name): name for name in names}
    close = difflib.get_close_matches(fold(str(word)), list(folded), n=1, cutoff=0.6)
    if close:
        return f"perhaps you mean {folded[close[0]]}"
    return f"choose from {', '.join(names)}" if names else "there is nothing to choose from"


class Declaration(BaseModel):
    """A frozen part of the catalog that refuses fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _known_fields_only(cls, data: Any) -> Any:
        if isinstance(data, cls):
            return data
        if not isinstance(data, Mapping):
            raise fault(f"expected fields such as {', '.join(list(cls.model_fields)[:3])}, not {shown(data)}")
        known = [field.alias or name for name, field in cls.model_fields.items()]
        for key in data:
            if key not in known:
                raise fault(f"there is no field {shown(key)} here, {nearest(key, known)}", str(key))
        return data


def shown(value: object) -> str:
    """A declared value as the owner wrote it, shortened.

    >>> shown({"a": 1}), shown("x"), shown(None)
    ('a mapping', "'x'", 'nothing')
    """
    if value is None:
        return "nothing"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return "a list"
    if not isinstance(value, str | bytes | numbers.Number | date) and getattr(value, "shape", None) != ():
        return f"a {type(value).__name__}"
    try:
        text = repr(value) if isinstance(value, str) else str(value)
    except ValueError:  # Python refuses to write an int of more than 4,300 digits
        text = "a very large number"
    except Exception:
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


def number(value: object) -> float:
    """A finite number; words, booleans, NaN and infinity are refused."""
    if is_placeholder(value):
        raise fault(f"still says {PLACEHOLDER}; write a number")
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        value = value.item()  # of NumPy
    if isinstance(value, bool) or not isinstance(value, Decimal | numbers.Real):
        raise fault(f"expected a number, not {shown(value)}")
    try:
        result = float(value)
    except (OverflowError, ValueError):
        result = math.inf
    if not math.isfinite(result):
        raise fault("expected a finite number")
    return result


def _positive(value: object) -> float:
    result = number(value)
    if result <= 0:
        raise fault(f"must be above 0, not {shown(value)}")
    return result


def _delta(value: object) -> float:
    result = number(value)
    if not 0 <= result < 1:
        raise fault(f"must be at least 0 and below 1, not {shown(value)}")
    return result


def _share(value: object) -> float:
    result = number(value)
    if not 0 <= result < 1:
        raise fault(f"is a share of delta: at least 0 and below 1, not {shown(value)}")
    return result


def _confidence(value: object) -> float:
    result = number(value)
    if not 0 < result < 1:
        raise fault(f"must lie strictly between 0 and 1, as 0.95 does, not {shown(value)}")
    return result


def _count(value: object) -> int:
    result = number(value)
    if result < 1 or result != math.floor(result) or result > 2**62:
        raise fault(f"must be a whole number of at least 1, not {shown(value)}")
    return int(result)


def _switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise fault(f"expected true or false, not {shown(value)}")
    return value


def name(value: object) -> str:
    """A name: text without control characters or blanks at its ends."""
    if is_placeholder(value):
        raise fault(f"still says {PLACEHOLDER}; write the name")
    if not isinstance(value, str):
        raise fault(f"expected a name, not {shown(value)}; put quotes around a name that looks like a value")
    if not value or value != value.strip() or re.search(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]", value):
        raise fault("a name must not be empty, begin or end with a blank, or hold control characters")
    return value


def text(value: object) -> str:
    """Plain text."""
    if not isinstance(value, str):
        raise fault(f"expected text, not {shown(value)}; put quotes around it")
    return value


Positive = Annotated[float, BeforeValidator(_positive)]
Delta = Annotated[float, BeforeValidator(_delta)]
Share = Annotated[float, BeforeValidator(_share)]
Confidence = Annotated[float, BeforeValidator(_confidence)]
Count = Annotated[int, BeforeValidator(_count)]
Switch = Annotated[bool, BeforeValidator(_switch)]
Name = Annotated[str, BeforeValidator(name)]
Text = Annotated[str, BeforeValidator(text)]
