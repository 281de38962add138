"""Values, units, clock, errors, configuration, registry, workers: what every room shares, and no subject. Imports nothing of ours."""
