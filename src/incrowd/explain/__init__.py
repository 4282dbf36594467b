"""Epsilon in words, odds and tables. This room knows guarantees and no data."""

from incrowd.explain.composition import read_releases
from incrowd.explain.meaning import Belief, Meaning, explain_epsilon

__all__ = ["Belief", "Meaning", "explain_epsilon", "read_releases"]
