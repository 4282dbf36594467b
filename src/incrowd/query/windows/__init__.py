"""Window functions over the rows of one person, in sub-queries below the aggregation.

Theorem. Let a relation have ownership (`ownership`), and let each window's PARTITION BY contain all columns
of the protected unit. Then the relation with the windows' values as further columns has ownership, and as
many rows for each unit as before.

Proof. A window's value on a row depends on the rows of the row's partition alone. All of these carry the
same unit, so they are functions of that unit's rows. A unit that comes or goes brings or takes whole
partitions and changes no row of another. Rows without a unit (NULL) share partitions among themselves, and
leaves drop them.

That needs values that are functions of the partition's rows as a multiset. Where SQL leaves the order open,
an engine decides by where rows lie, which depends on other people's rows. So nothing is left open here
(`window_frames`): functions that look at single rows get an order that ends with every column that the select
reads, so that rows which still tie are alike and may change places unseen; the others take peers together.
Zeros lose their sign before anything is ordered: 0.0 and -0.0 tie, and would not be alike.

A condition on a window's value drops rows of one unit by what that unit's rows say, like any other.
"""

from __future__ import annotations

from incrowd.query.windows.layering import has_windows, in_layers

__all__ = ["has_windows", "in_layers"]
