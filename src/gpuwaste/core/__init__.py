"""Values, units, clock, errors, configuration: what every room shares, and no subject. Imports nothing else of ours."""
