"""What the owner declares: sources, columns, bounds, domains, the protected unit, budgets, people.

`load` reads the owner's file, `catalog_for` builds the same from code, `propose` makes a first file from the
names and types of columns. Of SQL this room knows the names of types (`types`), of noise nothing, and it
never reads a row.
"""

from incrowd.catalog.bought import BoughtColumn, BoughtTable
from incrowd.catalog.budgets import Analyst, Budget, Defaults, Group, Sharing, Window
from incrowd.catalog.building import catalog_for
from incrowd.catalog.catalog import OWNER, SOLE_ANALYST, Catalog
from incrowd.catalog.columns import Column, DomainFrom, Scalar
from incrowd.catalog.loading import check, load, parse
from incrowd.catalog.propose import OwnersQuestion, propose, questions
from incrowd.catalog.protection import weak_promises
from incrowd.catalog.tables import Source, SourceKind, Table, Unit
from incrowd.catalog.types import NUMERIC, TYPES, Type, column_type
from incrowd.catalog.writing import dump

__all__ = [
    "NUMERIC",
    "OWNER",
    "SOLE_ANALYST",
    "TYPES",
    "Analyst",
    "BoughtColumn",
    "BoughtTable",
    "Budget",
    "Catalog",
    "Column",
    "Defaults",
    "DomainFrom",
    "Group",
    "OwnersQuestion",
    "Scalar",
    "Sharing",
    "Source",
    "SourceKind",
    "Table",
    "Type",
    "Unit",
    "Window",
    "catalog_for",
    "check",
    "column_type",
    "dump",
    "load",
    "parse",
    "propose",
    "questions",
    "weak_promises",
]
