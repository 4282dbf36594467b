"""Random bits, and exact samplers over whole arrays. This room knows nothing of privacy or of data.

Every sampler draws from its law exactly: there is no rounding to a nearby law, however small. The fast
paths are NumPy with certified error bounds; what they cannot decide, integer arithmetic does.
"""

from incrowd.noise.bernoulli import bernoulli, bernoulli_exp
from incrowd.noise.categorical import categorical
from incrowd.noise.gaussian_sampler import discrete_gaussian
from incrowd.noise.laplace_sampler import discrete_laplace, geometric
from incrowd.noise.mass import (
    discrete_gaussian_pmf,
    discrete_gaussian_sf,
    discrete_laplace_pmf,
    discrete_laplace_sf,
)
from incrowd.noise.source import SeededSource, Source, SystemSource
from incrowd.noise.uniform import uniform

__all__ = [
    "SeededSource",
    "Source",
    "SystemSource",
    "bernoulli",
    "bernoulli_exp",
    "categorical",
    "discrete_gaussian",
    "discrete_gaussian_pmf",
    "discrete_gaussian_sf",
    "discrete_laplace",
    "discrete_laplace_pmf",
    "discrete_laplace_sf",
    "geometric",
    "uniform",
]
