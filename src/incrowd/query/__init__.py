"""SQL to a bounded plan: pure functions on trees.

This room knows the catalog and the maths of bounding; it knows no engine, no noise and no budget, and reads
no row.
"""

from incrowd.query.describing import Description, description
from incrowd.query.doubts import Doubt
from incrowd.query.measure import Centre, Measure
from incrowd.query.plan import Aggregate, Key, Leaf, Plan
from incrowd.query.planner import Contribution, bound
from incrowd.query.sql import Question, parse
from incrowd.query.typed import Field

__all__ = [
    "Aggregate",
    "Centre",
    "Contribution",
    "Description",
    "Doubt",
    "Field",
    "Key",
    "Leaf",
    "Measure",
    "Plan",
    "Question",
    "bound",
    "description",
    "parse",
]
