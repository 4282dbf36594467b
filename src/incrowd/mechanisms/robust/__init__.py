"""Mechanisms whose error follows the data at hand rather than the worst case."""
