"""The account under ordinary life for minutes or hours: see `__main__`."""
