"""The ledger: an append-only, hash-chained account of what was spent.

`Ledger.open` opens or makes one, `reserve` spends before data is read, `record` and `recall` keep released
answers, `verify` recomputes everything. It knows guarantees and charges, but no SQL, data or noise.
"""

from incrowd.curator.ledger.account import Ledger, Reservation
from incrowd.curator.ledger.balances import Balance
from incrowd.curator.ledger.chain import Entry, Head
from incrowd.curator.ledger.limits import Cap, Caps
from incrowd.curator.ledger.verify import Verification

__all__ = ["Balance", "Cap", "Caps", "Entry", "Head", "Ledger", "Reservation", "Verification"]
