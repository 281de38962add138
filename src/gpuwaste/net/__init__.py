"""Communication between programs: HTTP client, addresses, munge, signing, outbox, exporter. Imports core."""
