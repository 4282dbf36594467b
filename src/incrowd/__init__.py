"""Incrowd."""
