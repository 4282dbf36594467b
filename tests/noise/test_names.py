from incrowd import noise


def test_the_exported_names_are_these():
    assert sorted(noise.__all__) == [
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
