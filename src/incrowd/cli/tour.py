"""`incrowd demo`: a tour on the bundled census table, with a real curator over a temporary ledger.

Nothing is staged: prices, answers, the refusal and the bars come from the same calls that a user makes. The
table is public, which is the only reason why exact answers may stand beside the noisy ones.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from incrowd.cli import asking, options, screen
from incrowd.data import adult, adult_path
from incrowd.errors import BudgetExceeded

if TYPE_CHECKING:
    from incrowd.curator import Answer, Curator

CATALOG = """\
sources:
  census: {{parquet: {path}}}
tables:
  adult:
    unit: row
    columns:
      age: {{type: integer, bounds: [17, 90]}}
      sex: {{type: text, domain: [Female, Male], nullable: false}}
      hours_per_week: {{type: integer, bounds: [1, 99]}}
      occupation: {{type: text}}
budget: {{epsilon: 1.0, delta: 1e-6}}
"""
INDENT = (0, 0, 0, 3)
COUNT = "SELECT COUNT(*) AS people FROM adult"
AVERAGE = "SELECT sex, AVG(age) AS age FROM adult GROUP BY sex"
KEYS = "SELECT occupation, COUNT(*) AS people FROM adult GROUP BY occupation\nORDER BY people DESC LIMIT 4"
QUANTILES = "SELECT sex, MEDIAN(age) AS middle, QUANTILE(age, 0.9) AS older\nFROM adult GROUP BY sex"
FINE = "SELECT sex, COUNT(*) AS people FROM adult WHERE age < 30 GROUP BY sex"


@dataclass
class Step:
    """One stop of the tour: a heading, the question, what came back, and a sentence about why."""

    title: str
    sql: str = ""
    said: str = ""
    result: dict[str, Any] = field(default_factory=dict)
    shown: RenderableType | None = None


def demo(json: options.Json = False) -> None:
    """Take a tour on the bundled census table: answers, prices, a refusal, the budget."""
    with _census() as curator:
        if json:
            screen.emit_json({"steps": [_step_json(step) for step in _steps(curator)]})
            return
        console = screen.console()
        console.print(Rule(Text("Incrowd: safety is blending into a crowd", style="bold"), style="cyan"))
        console.print(
            "48,842 people of the 1994 US census. The owner declared that each row is a person, what the "
            "columns may hold, and what everyone together may learn: epsilon 1, delta 1e-6. Exact answers "
            "are shown beside the noisy ones only because this table is public."
        )
        for number, step in enumerate(_steps(curator), start=1):
            console.print(_page(number, step))
        console.print(Rule(style="cyan"))
        console.print("Next: incrowd init your-table.csv")


def _page(number: int, step: Step) -> RenderableType:
    parts: list[RenderableType] = [Text(f"\n{number}. {step.title}", style="bold cyan")]
    if step.sql:
        from rich.syntax import Syntax

        highlighted = Syntax("", "sql", theme="ansi_dark", background_color="default").highlight(step.sql)
        highlighted.rstrip()
        parts.append(Padding(highlighted, INDENT, expand=False))
    if step.shown is not None:
        parts.append(Padding(step.shown, INDENT, expand=False))
    parts.append(Padding(Text(step.said), INDENT, expand=False))
    return Group(*parts)


def _step_json(step: Step) -> dict[str, Any]:
    return {"title": step.title, "sql": step.sql, "said": step.said, **step.result}


@contextmanager
def _census() -> Iterator[Curator]:
    """A curator over the bundled table, with a ledger that is thrown away."""
    from incrowd.catalog.writing import scalar
    from incrowd.curator import Curator

    with tempfile.TemporaryDirectory(prefix="incrowd-demo-") as folder:
        file = Path(folder) / "curator.yaml"
        file.write_text(CATALOG.format(path=scalar(str(adult_path()))), encoding="utf-8")
        with Curator.open(file, new_ledger=True) as curator:
            yield curator


def _steps(curator: Curator) -> Iterator[Step]:
    yield _price(curator)
    yield _count(curator)
    yield _average(curator)
    yield _keys(curator)
    yield _quantiles(curator)
    yield _again(curator)
    yield _refusal(curator)
    yield _bars(curator)
    yield _coin()
    yield _odds()


def _price(curator: Curator) -> Step:
    price = curator.price(COUNT, epsilon=0.1)
    width = next(iter(price.halfwidths.values()))
    said = (
        f"For epsilon 0.1 the answer would be within ± {width:.0f} of the truth, 95 times in 100. "
        "Asking the price reads and costs nothing."
    )
    return Step(
        "A price, before asking",
        COUNT,
        said,
        {"price": asking.price_json(price)},
    )


def _answered(title: str, sql: str, answer: Answer, said: str) -> Step:
    table = answer.to_arrow(answer.confidence)
    return Step(
        title,
        sql,
        said,
        {"answer": asking.answer_json(answer, table, True)},
        screen.answer_table(table, answer.confidence),
    )


def _count(curator: Curator) -> Step:
    answer = curator.ask(COUNT, epsilon=0.1)
    exact = adult().num_rows
    said = (
        f"Exact: {exact:,}. The noise hides whether any one person is in the table; the interval says "
        "how large it may be."
    )
    return _answered("A count", COUNT, answer, said)


def _average(curator: Curator) -> Step:
    answer = curator.ask(AVERAGE, epsilon=0.1)
    means = adult().group_by("sex").aggregate([("age", "mean")]).sort_by("sex").to_pylist()
    exact = ", ".join(f"{row['age_mean']:.2f}" for row in means)
    said = f"Exact: {exact}. An average over thousands needs little noise: one person hardly moves it."
    return _answered("An average by group, with intervals", AVERAGE, answer, said)


def _keys(curator: Curator) -> Step:
    answer = curator.ask(KEYS, epsilon=0.1)
    said = (
        "Occupations were not declared public, so a group is shown only if clearly many people share "
        f"it: a rare one could give somebody away. That costs a little delta ({answer.price.delta:.0e}). "
        "Sorting and LIMIT are free."
    )
    return _answered("Groups that are not public", KEYS, answer, said)


def _quantiles(curator: Curator) -> Step:
    answer = curator.ask(QUANTILES, epsilon=0.1)
    said = "The median and the age that 90% are below: two quantiles of one column, bought for one price."
    return _answered("Quantiles", QUANTILES, answer, said)


def _again(curator: Curator) -> Step:
    before = curator.budget()
    answer = curator.ask(COUNT, epsilon=0.1)
    free = answer.recalled and before[0].spent == curator.budget()[0].spent
    table = answer.to_arrow()
    said = (
        f"{table.column(0)[0].as_py():,} again, to the digit: it is on record and "
        f"{'free' if free else 'NOT free'}. Asking twice cannot wear the noise away."
    )
    return Step("The same question again", COUNT, said, {"answer": asking.answer_json(answer, table, False)})


def _refusal(curator: Curator) -> Step:
    try:
        curator.ask(FINE, epsilon=0.8)
    except BudgetExceeded as error:
        refusal = asking.with_hint(error, curator.budget())
        said = (
            "Refused before any row was read; nothing was spent. What is left still buys a smaller question."
        )
        return Step(
            "A question beyond the budget",
            FINE,
            said,
            {"refused": str(refusal)},
            Text(str(refusal), style="yellow"),
        )
    raise AssertionError("the demo's budget allows less than its last question")


def _bars(curator: Curator) -> Step:
    balances = curator.budget()
    said = (
        "The account is a hash chain on disk, written before the data is read: a crash leaves the price paid."
    )
    result = {"budgets": [screen.balance_json(balance) for balance in balances]}
    return Step("What is left", "", said, result, screen.balance_table(balances))


def _coin() -> Step:

    import numpy as np

    from incrowd.mechanisms import RandomizedResponse

    incomes = adult().column("income").to_numpy(zero_copy_only=False)
    rich = np.asarray(incomes == ">50K")
    coin = RandomizedResponse(truth=0.75)
    estimate = coin.estimate(coin.release(rich))
    share, low, high = (float(part[1]) / len(rich) for part in (estimate.counts, estimate.low, estimate.high))
    said = (
        f"Everybody lies with probability 1/4, yet the share of incomes above $50,000 comes out as "
        f"{share:.1%} ({low:.1%} to {high:.1%}; exact {rich.mean():.1%}). Randomized response, epsilon ln 3 "
        "for each person."
    )
    return Step(
        "The same idea without a curator: a coin", "", said, {"share": share, "low": low, "high": high}
    )


def _odds() -> Step:
    from incrowd.explain import explain_epsilon

    meaning = explain_epsilon(1.0)
    result = {"epsilon": 1.0, "at_most": meaning.at(0.5).high}
    return Step("What epsilon 1 means (delta aside)", "", meaning.sentence, result)
