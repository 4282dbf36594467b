"""Choosing a candidate: by utility, by rank, by threshold."""
