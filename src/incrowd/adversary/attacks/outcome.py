"""What an attack reports: against what it was tried, how often it was right, and what a guarantee allows.

An attack is a function that returns a `Report`: who the attacker is assumed to be, and one `Attempt` for
each release that was attacked. Success comes with a Clopper-Pearson interval. Where the release is private,
`allowed` is the most that its guarantee leaves to any attacker (`bounds`), and the attempt *holds* as long as
the measured success does not prove more, beyond one chance in a million.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from incrowd.errors import InvalidInput

if TYPE_CHECKING:
    import altair

CONFIDENCE = 0.99
ACCUSING = 1 - 2e-6
"""How sure an accusation is: the best attack reaches what is allowed, so 0.99 would accuse the innocent."""


@dataclass(frozen=True)
class Rate:
    """A frequency with its Clopper-Pearson interval.

    >>> rate = Rate(99, 100)
    >>> rate.value, round(rate.low, 3), round(rate.high, 4)
    (0.99, 0.928, 0.9999)
    """

    hits: int
    trials: int
    confidence: float = CONFIDENCE

    def __post_init__(self) -> None:
        if not (self.trials >= 1 and 0 <= self.hits <= self.trials):
            raise InvalidInput("A rate needs at least one trial, and between none and all of them hits.")

    @property
    def value(self) -> float:
        """The share of hits."""
        return self.hits / self.trials

    @property
    def low(self) -> float:
        """The lower end."""
        from scipy.special import betaincinv

        tail = (1 - self.confidence) / 2
        return float(betaincinv(self.hits, self.trials - self.hits + 1, tail)) if self.hits else 0.0

    @property
    def high(self) -> float:
        """The upper end."""
        from scipy.special import betainccinv

        tail = (1 - self.confidence) / 2
        if self.hits == self.trials:
            return 1.0
        return float(betainccinv(self.hits + 1, self.trials - self.hits, tail))


@dataclass(frozen=True)
class Attempt:
    """One release under attack."""

    against: str
    """The release, in words: `exact counts`, `the curator, epsilon 0.5`."""
    success: Rate
    guessing: float
    """The success of guessing without the release."""
    allowed: float | None = None
    """The most that the release's guarantee leaves to any attacker; None where it has no guarantee."""
    x: float | None = None
    """The place on the report's axis, where it has one."""
    note: str = ""
    claimed: bool = False
    """Whether `allowed` is only a claim, of a release known to break it: shown, never a failure."""

    @property
    def holds(self) -> bool | None:
        """Whether the measured success is one that the guarantee allows; None without a guarantee."""
        if self.allowed is None:
            return None
        return Rate(self.success.hits, self.success.trials, ACCUSING).low <= self.allowed

    def to_dict(self) -> dict[str, Any]:
        """The attempt as plain values."""
        ends = {"value": self.success.value, "low": self.success.low, "high": self.success.high}
        return {**asdict(self), "success": {**asdict(self.success), **ends}, "holds": self.holds}


@dataclass(frozen=True)
class Report:
    """What an attack found."""

    name: str
    """The attack's name on the command line."""
    title: str
    knows: str
    """What the attacker is assumed to know, in one sentence."""
    succeeds: str
    """What counts as success, in one sentence."""
    attempts: tuple[Attempt, ...]
    lesson: str = ""
    """What follows for an owner, in a sentence or two."""
    axis: str = ""
    """What `x` of the attempts is; empty where they are not along an axis."""
    logarithmic: bool = False
    """Whether the axis is logarithmic; then all `x` are positive."""
    details: dict[str, Any] = field(default_factory=dict)
    """Whatever else the attack shows, as plain values (a worked example, say)."""

    @property
    def holds(self) -> bool:
        """Whether no guarantee was broken; attempts that are `claimed` do not count."""
        return all(attempt.claimed or attempt.holds is not False for attempt in self.attempts)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values."""
        told = {
            name: getattr(self, name) for name in ("name", "title", "knows", "succeeds", "lesson", "axis")
        }
        rows = [attempt.to_dict() for attempt in self.attempts]
        return {**told, "holds": self.holds, "attempts": rows, "details": self.details}

    def plot(self) -> altair.LayerChart:
        """Success with its interval, beside what guessing gives and what the guarantee allows."""
        try:
            import altair as alt
        except ImportError:
            raise InvalidInput("A picture needs the package altair: pip install 'incrowd[plot]'.") from None
        rows = [_row(attempt) for attempt in self.attempts]
        base = alt.Chart(alt.InlineData(values=rows))
        scale = alt.Scale(domain=[0, 1])
        drawn: altair.LayerChart = (_lines if self.axis else _bars)(alt, base, self, scale)
        return drawn


def _row(attempt: Attempt) -> dict[str, Any]:
    rate = attempt.success
    return {
        "against": attempt.against,
        "x": attempt.x,
        "success": rate.value,
        "low": rate.low,
        "high": rate.high,
        "guessing": attempt.guessing,
        "allowed": attempt.allowed,
    }


def _names(attempts: Sequence[Attempt]) -> list[str]:
    return list(dict.fromkeys(attempt.against for attempt in attempts))


def _bars(alt: Any, base: Any, report: Report, scale: Any) -> Any:
    """One bar for each release, a rule for its interval, ticks for guessing and for what is allowed."""
    side = alt.Y("against:N", sort=_names(report.attempts), title=None, axis=alt.Axis(labelLimit=320))
    length = alt.X("success:Q", scale=scale, title="share of successes", axis=alt.Axis(format="%"))
    bars = base.mark_bar(color="#8fb3d9", height=14).encode(y=side, x=length)
    ends = base.mark_rule(color="#1f4e79", strokeWidth=2).encode(y=side, x="low:Q", x2="high:Q")
    blind = base.mark_tick(color="#777777", thickness=2, height=20).encode(y=side, x="guessing:Q")
    most = (
        base.transform_filter("datum.allowed !== null")
        .mark_tick(color="#c0392b", thickness=3, height=24)
        .encode(y=side, x="allowed:Q", tooltip=["against:N", "success:Q", "allowed:Q"])
    )
    title = alt.Title(report.title, subtitle="grey: guessing; red: the most that the guarantee allows")
    return alt.layer(bars, ends, blind, most).properties(title=title, width=460)


def _lines(alt: Any, base: Any, report: Report, scale: Any) -> Any:
    """A line for each release over the axis with its band; dashed, what the guarantee allows."""
    spread = alt.Scale(type="log", nice=False) if report.logarithmic else alt.Scale()
    marks = alt.Axis(tickCount=6, format="~g", grid=False) if report.logarithmic else alt.Axis()
    x = alt.X("x:Q", title=report.axis, scale=spread, axis=marks)
    colour = alt.Color(
        "against:N",
        sort=_names(report.attempts),
        title=None,
        legend=alt.Legend(labelLimit=320, symbolOpacity=1),
    )
    y = alt.Y("success:Q", scale=scale, title="share of successes", axis=alt.Axis(format="%"))
    band = base.mark_area(opacity=0.2).encode(x=x, y=alt.Y("low:Q", scale=scale), y2="high:Q", color=colour)
    line = base.mark_line(point=True).encode(x=x, y=y, color=colour)
    blind = base.mark_line(color="#777777", strokeDash=[1, 3]).encode(x=x, y="guessing:Q", detail="against:N")
    private = base.transform_filter("datum.allowed !== null").encode(x=x, y="allowed:Q", color=colour)
    most = private.mark_line(strokeDash=[6, 4])
    # A lone point has no line to dash.
    ends = private.mark_point(shape="stroke", size=120)
    title = alt.Title(report.title, subtitle="dots: guessing; dashes: the most that the guarantee allows")
    return alt.layer(band, line, blind, most, ends).properties(title=title, width=460)
