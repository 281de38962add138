"""The hub store: its schema and named queries, SQL files only."""
