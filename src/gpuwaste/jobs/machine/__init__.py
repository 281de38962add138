"""The machine by time: nodes, outages, reservations, what runs held on each node. Imports jobs, slurm and store."""
