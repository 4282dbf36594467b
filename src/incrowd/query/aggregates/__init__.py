"""Aggregates of the released SELECT as bounded measures, one family of aggregates in a file.

| asked | measures | estimate (free) |
|---|---|---|
| COUNT(*), COUNT(x) | n: rows that count | n |
| COUNT(DISTINCT unit) | n: (unit, group) pairs | n |
| COUNT(DISTINCT x) | n, m: values, at most C and 1 of each unit | m, or n where it is more |
| SUM(x) | s: clamped values | s |
| AVG(x) | s: x - centre, n | centre + s / n |
| AVG(x) of units' averages | s: (unit, group) averages - centre, n: pairs | centre + s / n |
| VAR, STDDEV | s, q: (x - centre)^2 - half its span, n | q / n - (s / n)^2 |
| SUM(w x) / SUM(w) | s: w (x - centre), n: w | centre + s / n |
| COVAR, CORR, REGR_* | sums of the products, likewise | |
| MODE, HISTOGRAM, the most frequent values | n by value, as COUNT(*) with GROUP BY | |
| MEDIAN, quantiles, MIN, MAX | a histogram of x, or of days or seconds | by rank |

Centring halves what one row can add, and with it the noise. Sums that are divided by counts are weighed by
rows, so that a heavy unit's sum and count shrink alike and the ratio stays an average. Where nobody
declared how many rows a unit has, they are weighed jointly (`Measure.ball`), around centres that are bought:
then wide bounds cost nothing.
"""

from incrowd.query.aggregates.by_value import counts_and_lists, over
from incrowd.query.aggregates.collecting import Aggregates
from incrowd.query.aggregates.expanding import Expanding

__all__ = ["Aggregates", "Expanding", "counts_and_lists", "over"]
