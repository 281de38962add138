"""Small boosters on awkward columns: zeros that mean something, unknown values, few distinct values."""

import numpy as np
import xgboost
from numpy.typing import NDArray

FEATURES = 6


def rows(n: int = 2000, seed: int = 3) -> NDArray[np.float32]:
    """Return n rows: normal, counts with many zeros, whole seconds, mostly unknown, never known, 0 or 1."""
    rng = np.random.default_rng(seed)
    columns = [
        rng.normal(size=n),
        rng.poisson(0.7, n),
        rng.integers(0, 86400, n),
        np.where(rng.random(n) < 0.8, np.nan, rng.random(n)),
        np.full(n, np.nan),
        rng.integers(0, 2, n),
    ]
    values = np.column_stack(columns).astype(np.float32)
    values[rng.random(n) < 0.2, 1] = np.nan
    return values


def probability(n: int = 2000, rounds: int = 20) -> xgboost.Booster:
    """Return a booster for which a zero count, an unknown one and a high one mean three things."""
    x = rows(n)
    chance = np.where(np.isnan(x[:, 1]), 0.5, np.where(x[:, 1] == 0, 0.1, 0.8)) * (x[:, 2] > 40000)
    y = np.random.default_rng(4).random(n) < chance
    return grow(x, y.astype(np.float32), {"objective": "binary:logistic"}, rounds)


def quantile(q: float, n: int = 2000, rounds: int = 10) -> xgboost.Booster:
    """Return a booster of a log quantile."""
    x = rows(n)
    y = 5 + np.nan_to_num(x[:, 1]) + x[:, 0] * x[:, 5]
    return grow(x, y.astype(np.float32), {"objective": "reg:quantileerror", "quantile_alpha": q}, rounds)


def grow(x: NDArray[np.float32], y: NDArray[np.float32], params: dict[str, object], rounds: int) -> xgboost.Booster:
    whole = {"max_depth": 4, "nthread": 1, "seed": 1, "tree_method": "hist", **params}
    return xgboost.train(whole, xgboost.QuantileDMatrix(x, label=y, nthread=1), rounds)
