"""DuckDB, as a file or as a lake on PostgreSQL: connection, schema, leases. Tables belong to their subjects. Imports core."""
