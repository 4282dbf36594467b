"""Attacks on releases and audits of mechanisms. This room imports anything; nothing imports it."""
