"""The hub store: numbered migrations and named queries, SQL files only."""
