"""Noise added to numbers: on a lattice, to histograms, to means and spreads."""
