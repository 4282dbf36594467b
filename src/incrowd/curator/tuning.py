"""Tuning: a stated epsilon, spent once by the owner, buys a private profile of tables and what it proposes.

All measurements are ordinary questions (`probes`), priced beforehand and paid together: one reservation for
the composition of all their releases, before the first row is read. Which caps and bounds the quantiles are
computed under is chosen from earlier releases; the guarantees of all releases are fixed, so the theorem of
`schedule` holds. What comes of it is recorded once, and the same tuning on unchanged data is free.

A bought value is no promise. A cap is read from a noisy census like one that is chosen for a question
(`contribution`), and the census itself goes into the owner's file: from it each question chooses its own
caps and says how many units may exceed them.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from incrowd.backends import Progress, Reader
from incrowd.catalog import NUMERIC, Catalog
from incrowd.catalog.declaration import nearest
from incrowd.curator import preparing, pricing
from incrowd.curator.evidence import SURE
from incrowd.curator.paying import Payment
from incrowd.curator.preparing import Prepared
from incrowd.curator.prices import Price
from incrowd.curator.probes import SHARES, Probe, probes_of
from incrowd.curator.profile import Profile, applied, without_bought
from incrowd.curator.proposing import CONFIDENCE, Measurement, read_proposals, read_quantiles
from incrowd.curator.released import Released, pack, unpack
from incrowd.curator.request import (
    Request,
    plain_number,
)
from incrowd.errors import IncrowdError, InvalidInput
from incrowd.noise.readings import (
    is_number,
    items_of,
    shown,
)

if TYPE_CHECKING:
    from incrowd.curator.curator import Curator

DELTA_SHARE = 0.01
"""The part of the budget's delta that tuning spends on domains unless the owner says otherwise."""
MOST_UNSEEN = 20_000
"""A measurement that shows nothing about fewer units than this is not worth its epsilon."""
_DAY = len("2026-01-31")
UNKNOWN_ROWS = 4
"""How many rows a unit counts for in quantiles where a census shows nothing."""


@dataclass(frozen=True)
class Tuning:
    """What a tuning would ask, in order, and what it costs altogether."""

    catalog: Catalog
    """The owner's file without what was bought before about these tables."""
    tables: tuple[str, ...]
    measurements: tuple[Measurement, ...]
    price: Price

    @property
    def words(self) -> str:
        """What it buys, for the owner who reads the ledger."""
        places = dict.fromkeys(measured.probe.place for measured in self.measurements)
        return f"tune {' and '.join(self.tables)}: {', '.join(places)}"

    @property
    def fingerprint(self) -> str:
        """Identifies it in the ledger."""
        parts = [measured.question.fingerprint(measured.price) for measured in self.measurements]
        return hashlib.sha256(json.dumps(["tune", *parts]).encode()).hexdigest()


def planned(
    curator: Curator,
    epsilon: float,
    table: str | None = None,
    columns: Collection[str] | None = None,
    delta: float | None = None,
) -> Tuning:
    """The measurements of a tuning, with their prices; nothing is read or spent.

    columns: which to measure, `column` or `table.column`; all if None.
    """
    epsilon, delta = plain_number(epsilon, "epsilon"), plain_number(delta, "delta")
    if not is_number(epsilon) or not 1e-100 <= epsilon <= 1e100:
        raise InvalidInput(
            f"epsilon must be a positive number, not {shown(epsilon)}.", arguments=("epsilon",)
        )
    if delta is not None and not (is_number(delta) and 0 <= delta < 1):
        raise InvalidInput(f"delta must be at least 0 and below 1, not {shown(delta)}.", arguments=("delta",))
    tables = _tables(curator.catalog, table)
    slack = curator.catalog.budget.delta * DELTA_SHARE if delta is None else float(delta)
    catalog = without_bought(curator.catalog, tables)
    probes = _chosen([probe for name in tables for probe in probes_of(catalog, name, slack)], columns)
    if not probes:
        raise InvalidInput(
            f"There is nothing to measure in {' and '.join(tables)}: all contributions are declared, no "
            "number has bounds, and domains of texts are declared or need a delta in the budget."
        )
    weight = sum(SHARES[probe.kind] for probe in probes)
    shares = [(probe, _rounded_down(epsilon * SHARES[probe.kind] / weight)) for probe in probes]
    _refuse_blind(catalog, shares, epsilon)
    keys = sum(probe.kind == "keys" for probe in probes)
    measurements = [
        _measurement(curator, catalog, probe, share, slack / keys if probe.kind == "keys" else 0.0)
        for probe, share in shares
    ]
    return Tuning(catalog, tables, tuple(measurements), _together(measurements, epsilon, curator))


def tune(
    curator: Curator,
    epsilon: float,
    table: str | None = None,
    columns: Collection[str] | None = None,
    delta: float | None = None,
    progress: Progress | None = None,
) -> Profile:
    """The profile of a tuning, paid now or on record."""
    tuning = planned(curator, epsilon, table, columns, delta)
    with curator.snapshot() as rows:
        owner = curator.catalog.owner
        payment = Payment.recall(curator.ledger, owner, tuning.fingerprint, rows.version)
        if payment.recorded is None:
            for measured in tuning.measurements:
                for leaf in measured.question.plan.leaves:
                    preparing.prove(leaf, curator.backend)
            words = tuning.words if curator.catalog.keep_questions else None
            payment = payment.reserve(tuning.price.guarantee, tuning.price.charged_delta, words)
            today = dt.datetime.now(dt.UTC).date().isoformat().encode()
            payment.record(today + pack(_run(curator, tuning, progress, rows)))
    assert payment.recorded is not None
    day = dt.date.fromisoformat(payment.recorded[:_DAY].decode())
    return _profile(curator, tuning, unpack(payment.recorded[_DAY:]), day, payment.recalled)


def _tables(catalog: Catalog, table: str | None) -> tuple[str, ...]:
    private = [name for name, declared in catalog.tables.items() if declared.private]
    if table is None:
        return tuple(private)
    name = catalog.find(table) if isinstance(table, str) else None
    if name is None or name not in private:
        raise InvalidInput(
            f"There is no private table {_name(table)}, {nearest(_name(table), private)}.",
            arguments=("table",),
        )
    return (name,)


def _name(value: object) -> str:
    return value if isinstance(value, str) else shown(value)


def _chosen(probes: list[Probe], columns: Collection[str] | None) -> list[Probe]:
    """The probes of tables and of the columns that were named."""
    if columns is None:
        return probes
    names = {name for probe in probes if probe.column for name in (probe.column, probe.place)}
    listed = items_of(columns, "columns must be a list of names.")
    for column in listed:
        if not isinstance(column, str) or column not in names:
            near = nearest(_name(column), sorted(names))
            raise InvalidInput(
                f"There is nothing to measure about a column {_name(column)}, {near}.",
                arguments=("columns",),
            )
    return [probe for probe in probes if not probe.column or {probe.column, probe.place} & set(listed)]


def _measurement(
    curator: Curator, catalog: Catalog, probe: Probe, epsilon: float, delta: float
) -> Measurement:
    question = _question(curator, catalog, probe, epsilon, delta, UNKNOWN_ROWS)
    price = pricing.price(question.plan, epsilon, delta, confidence=CONFIDENCE)
    return Measurement(probe, question, price)


def _question(
    curator: Curator, catalog: Catalog, probe: Probe, epsilon: float, delta: float, rows: int | None
) -> Prepared:
    request = Request(
        probe.sql,
        epsilon,
        delta=delta,
        confidence=CONFIDENCE,
        contribution=rows if probe.kind == "quantiles" else None,
    )
    return curator.prepare(request, catalog)


def _rounded_down(share: float) -> float:
    """A share of epsilon with six digits: together they do not exceed the whole.

    >>> _rounded_down(1 / 3), _rounded_down(2 / 11)
    (0.333333, 0.181818)
    """
    digits = 5 - math.floor(math.log10(share))
    return math.floor(share * 10.0**digits * (1 - 2.0**-40)) / 10.0**digits


def _together(measurements: Sequence[Measurement], epsilon: float, curator: Curator) -> Price:
    """One price for all measurements, whose lines are known by the measurement's number."""
    lines = tuple(
        replace(line, leaf=number)
        for number, measured in enumerate(measurements)
        for line in measured.price.lines
    )
    return Price(
        float(epsilon),
        sum(measured.price.delta for measured in measurements),
        lines,
        {},
        CONFIDENCE,
        before=curator.ledger.remaining(curator.catalog.owner),
    )


def _refuse_blind(catalog: Catalog, shares: Sequence[tuple[Probe, float]], epsilon: float) -> None:
    """Refuse an epsilon with which nobody could be seen, before a question is made of it."""
    probe, share = min(shares, key=lambda pair: pair[1])
    most = catalog.tables[probe.table].max_rows or MOST_UNSEEN
    unseen = SURE / share
    if unseen > most:
        raise InvalidInput(
            f"epsilon {epsilon:g} is too little for {len(shares)} measurements: fewer than about "
            f"{math.ceil(unseen):,} units of {probe.place} could not be seen; spend about "
            f"{epsilon * unseen / most:.2g}, or tune one table, or fewer columns, at a time.",
            arguments=("epsilon", "table"),
        )


def _run(curator: Curator, tuning: Tuning, progress: Progress | None, rows: Reader) -> list[Released]:
    """All measurements in order. Nothing that may fail stands here but the engine."""
    released: list[Released] = []
    for number, measured in enumerate(tuning.measurements):
        question = _informed(curator, tuning, released, measured)
        done = None if progress is None else _part(progress, number, len(tuning.measurements))
        chosen = curator.choose_caps(question, measured.price, done, rows=rows)
        exact = curator.execute(question, chosen, done, rows)
        released += curator.noise(exact, measured.price)
    return released


def _part(progress: Progress, number: int, of: int) -> Progress:
    return lambda share: progress((number + share) / of)


def _informed(
    curator: Curator, tuning: Tuning, released: Sequence[Released], measured: Measurement
) -> Prepared:
    """The question of quantiles, under caps and bounds that were released before; its price stays."""
    if measured.probe.kind != "quantiles":
        return measured.question
    done = list(zip(tuning.measurements, released, strict=False))
    probe, price = measured.probe, measured.price
    proposals = [
        proposal
        for proposal in read_proposals(tuning.catalog, done, "", dt.date.min)[0]
        if proposal.table == probe.table
        and (proposal.column, proposal.field) in (("", "contribution"), (probe.column, "bounds"))
    ]
    for known in (proposals, [proposal for proposal in proposals if not proposal.column]):
        rows = None if any(not proposal.column for proposal in known) else UNKNOWN_ROWS
        try:
            catalog = applied(tuning.catalog, known)
            question = _question(curator, catalog, probe, price.epsilon, price.delta, rows)
            lines = pricing.price(question.plan, price.epsilon, price.delta, confidence=CONFIDENCE).lines
        except IncrowdError:
            # The price is paid: what cannot be asked under narrower bounds is asked as it was priced.
            continue
        # Fewer cells would make another tree, whose releases are not those that were paid for.
        if lines == price.lines:
            return question
    return measured.question


def _profile(
    curator: Curator, tuning: Tuning, released: Sequence[Released], day: dt.date, recalled: bool
) -> Profile:
    answer = tuning.fingerprint[:16]
    done = list(zip(tuning.measurements, released, strict=True))
    proposals, readings = read_proposals(tuning.catalog, done, answer, day)
    for measured, release in done:
        if measured.probe.kind == "quantiles":
            question = _informed(curator, tuning, released, measured)
            readings += read_quantiles(measured, question, release)
    order = [(measured.probe.table, measured.probe.column) for measured in tuning.measurements]
    readings.sort(key=lambda reading: order.index((reading.table, reading.column)))
    return Profile(
        tuple(readings),
        tuple(proposals),
        tuple(_remarks(tuning)),
        tuning.price.epsilon,
        tuning.price.delta,
        answer,
        applied(curator.catalog, proposals),
        recalled,
    )


def _remarks(tuning: Tuning) -> list[str]:
    """Why something was not measured."""
    said = []
    probed = {(measured.probe.table, measured.probe.column) for measured in tuning.measurements}
    for name in tuning.tables:
        table = tuning.catalog.tables[name]
        assert table.unit is not None
        if table.unit.is_row:
            said.append(f"{name}: each row is a unit of its own, so a unit has 1 row.")
        others = {
            column: facts
            for column, facts in table.columns.items()
            if (name, column) not in probed and column not in table.unit.columns and facts.domain is None
        }
        texts = [column for column, facts in others.items() if facts.type == "text"]
        numbers = [column for column, facts in others.items() if facts.type in NUMERIC and not facts.bounds]
        if texts:
            said.append(f"{name}: the values of {', '.join(texts)} can be bought only with a delta.")
        if numbers:
            said.append(f"{name}: {', '.join(numbers)} without bounds cannot be measured; declare bounds.")
    return said
