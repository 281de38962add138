"""What every program shares on the wire: munge, HTTP client, durable outbox. Imports waste, store, slurm, core."""
