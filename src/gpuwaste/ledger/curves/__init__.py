"""A job's samples on demand: from agents, from Prometheus, else from the ledger."""
