"""The daemon beside slurmctld that says what to expect of a submission. Imports wire, predict, policy and below."""
