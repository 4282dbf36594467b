"""Peers as the benches call them: mechanisms in this process, queries in environments of their own."""
