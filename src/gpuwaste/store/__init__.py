"""DuckDB, as a file or as a lake on PostgreSQL: connection, schema, leases. The tables belong to the subjects."""
