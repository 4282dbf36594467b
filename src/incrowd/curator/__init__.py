"""Price, reserve, execute, add noise, record, answer: the only room where data, noise and budget meet."""

from incrowd.curator.answer import Answer
from incrowd.curator.curator import Curator
from incrowd.curator.ledger import Balance, Ledger
from incrowd.curator.pricing import Line, Price

__all__ = ["Answer", "Balance", "Curator", "Ledger", "Line", "Price"]
