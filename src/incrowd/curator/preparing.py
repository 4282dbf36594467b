"""Parse and bound: a request becomes a question that is ready to be priced. Reads public tables only.

Everything that can be wrong with a question is found here or in its price, while nothing is spent.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from incrowd.backends import (
    Backend,
    census_statement,
    distinct_values,
    range_statement,
    release_statement,
    table_rows,
)
from incrowd.catalog import Catalog
from incrowd.catalog.types import arrow_type, column_type, kind_of
from incrowd.curator import postprocessing
from incrowd.curator.prices import Price
from incrowd.curator.pricing import in_best_norm
from incrowd.curator.request import Request
from incrowd.curator.scratch import scratch
from incrowd.errors import BackendError, QueryError
from incrowd.query import Contribution, Doubt, Field, Key, Leaf, Plan, bound, parse
from incrowd.query.sql import DIALECT

MOST_GROUPS = 1_000_000


@dataclass(frozen=True)
class Prepared:
    """A bounded question with the public things that its answer needs."""

    request: Request
    plan: Plan
    keys: tuple[pa.Table | None, ...]
    """For each leaf, every combination of its public keys; None where there is no key or a private one."""
    public: Mapping[str, pa.Table]
    """The public tables that the SQL above the released numbers reads."""

    @property
    def groups(self) -> tuple[int | None, ...]:
        """For each leaf, how many groups it has; None where keys are private."""
        return tuple(
            (None if leaf.keys else 1) if keys is None else keys.num_rows
            for leaf, keys in zip(self.plan.leaves, self.keys, strict=True)
        )

    def fingerprint(self, price: Price) -> str:
        """What is released and its price in one word: two asks with the same one share one release.

        Whatever else they ask for is computed from it, so the second is post-processing of what was paid.
        """
        lines = [
            [line.leaf, line.kind, target, noise, str(line.epsilon), line.mu, str(line.delta)]
            for line in price.lines
            for target in [self.plan.respelled(line.leaf, line.target)]
            # How many ranks are asked at once decides how a quantile's epsilon is shared, not what it is.
            for noise in ["ranks" if line.kind == "quantile" else line.noise]
        ]
        text = json.dumps([self.plan.fingerprint, lines, price.confidence])
        return f"{self.beginning(price)}{hashlib.sha256(text.encode()).hexdigest()}"

    def beginning(self, price: Price) -> str:
        """How fingerprints begin: what is released, then epsilon, so that they sort by it."""
        released = hashlib.sha256(self.plan.fingerprint.encode()).hexdigest()
        return f"{released}.{struct.pack('>d', price.epsilon).hex()}."


def stated_epsilon(fingerprint: str) -> float:
    """The epsilon that a fingerprint states."""
    (epsilon,) = struct.unpack(">d", bytes.fromhex(fingerprint.split(".")[1]))
    return float(epsilon)


def prepare(
    request: Request, catalog: Catalog, backend: Backend, fields: Mapping[str, Mapping[str, Field]]
) -> Prepared:
    """The question of a request; QueryError where it cannot be asked.

    `fields` are the columns of public tables that the owner left to their sources (`public_fields`).
    """
    question = parse(request.sql, request.dialect or DIALECT)
    contribution = Contribution(request.contribution, request.groups)
    plan = bound(question, catalog, fields, contribution)
    public = _public_tables(plan, catalog, backend)
    postprocessing.check(plan, public)
    plan = in_best_norm(plan, chosen_delta(plan, request, catalog))
    plan = replace(plan, doubts=tuple(_decided(plan.doubts, backend)))
    keys = tuple(
        None if leaf.adds_up(index) else public_keys(leaf, backend) for index, leaf in enumerate(plan.leaves)
    )
    return Prepared(request, plan, keys, public)


def chosen_delta(plan: Plan, request: Request, catalog: Catalog) -> float:
    """The delta of a request: its own, that of the SQL's options, or the owner's default."""
    delta = plan.options.get("delta") if request.delta is None else request.delta
    return catalog.default_delta if delta is None else delta


def prove(leaf: Leaf, backend: Backend) -> None:
    """BackendError unless no row can make a leaf's first statements raise.

    Those are the ranges of values where centres are open, and the census where caps are. The next statement
    holds the same expressions over rows, and the engine proves it before running it.
    """
    if leaf.values:
        backend.prove(range_statement(leaf).tree)
    backend.prove(
        (census_statement(leaf) if leaf.uncapped else release_statement(leaf.with_bought_caps(), {})).tree
    )


def public_fields(catalog: Catalog, backend: Backend) -> dict[str, dict[str, Field]]:
    """The columns of public tables that the owner left to their sources."""
    fields: dict[str, dict[str, Field]] = {}
    for name, table in catalog.tables.items():
        if not table.private:
            types = {column: column_type(kind) for column, kind in backend.public_types(name).items()}
            fields[name] = {
                column: Field(kind_of(kind), name=f"{name}.{column}")
                for column, kind in types.items()
                if kind is not None
            }
    return fields


def _public_tables(plan: Plan, catalog: Catalog, backend: Backend) -> dict[str, pa.Table]:
    tables = {}
    for name in postprocessing.public_tables(plan):
        declared = catalog.find(name)
        if declared is None or catalog.tables[declared].private:
            raise QueryError(f"{name} cannot be read beside released numbers.")
        tables[name] = backend.run(table_rows(declared))
    return tables


def _decided(doubts: Iterable[Doubt], backend: Backend) -> Iterator[Doubt]:
    """The doubts that hold, by the values in public tables."""
    for doubt in doubts:
        decided: Doubt | None = doubt
        if doubt.domain is not None:
            try:
                listed = backend.run(distinct_values(doubt.domain))
            except BackendError:
                continue  # A warning is not worth an error.
            decided = doubt.among(listed.column("v").to_pylist())
        if decided is not None:
            yield decided


def public_keys(leaf: Leaf, backend: Backend) -> pa.Table | None:
    """Every combination of a leaf's public keys; None where it has no key or a private one."""
    if not leaf.keys or not leaf.public:
        return None
    domains = [_listed(key, backend) for key in leaf.keys]
    size = math.prod(domain.num_rows for domain in domains)
    if size > MOST_GROUPS:
        names = ", ".join(key.label for key in leaf.keys)
        raise QueryError(
            f"The domains of {names} make {size:,} groups, and each would be answered; "
            "group by fewer or coarser keys."
        )
    with scratch() as local:
        for index, domain in enumerate(domains):
            local.register(f"d{index}", domain)
        places = range(len(domains))
        picked = ", ".join(f"d{index}.v AS k{index}" for index in places)
        tables = ", ".join(f"d{index}" for index in places)
        order = ", ".join(f"k{index}" for index in places)
        return local.sql(f"SELECT DISTINCT {picked} FROM {tables} ORDER BY {order}").to_arrow_table()


def _listed(key: Key, backend: Backend) -> pa.Table:
    """The values of a public key, in a column v."""
    if key.values is not None:
        floats = key.kind == "float"
        values = [float(value) if floats and value is not None else value for value in key.values]
        return pa.table({"v": pa.array(values, arrow_type(key.kind))})
    assert key.domain is not None
    return backend.run(distinct_values(key.domain))
