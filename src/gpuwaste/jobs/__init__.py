"""The history of jobs: its table, keys, events, importers. Imports slurm, store, net, show and core."""
