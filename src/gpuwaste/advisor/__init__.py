"""The daemon on the slurmctld host that advises on submissions. Imports wire, predict, policy and below."""
