"""DuckDB, as a file or as a lake on PostgreSQL: connection, schema, leases. Its tables are the subjects'."""
