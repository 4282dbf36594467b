"""Caps chosen privately, measured on tables that nothing was tuned on."""
