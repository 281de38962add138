"""The right size: what the last runs of such jobs used, and a smaller request that the next run would fit.

`rule.py` is the rule, used by the findings here, by plan, and by the replay on public data (bench/sizes.py).
Such jobs are those of one user on one cluster with the same name (digits aside), GPU type and number of GPUs.
"""
