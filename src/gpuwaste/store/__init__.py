"""DuckDB stores: connection, numbered migrations, one named .sql per query. Imports core only."""
