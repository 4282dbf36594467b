"""Attacks on releases, one per file, with what they share."""
