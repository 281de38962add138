"""The inventory of the hub's store beside its schema: nothing with text is without a kind, no table without an end."""

from gpuwaste.core.config import Config
from gpuwaste.store.database import schema_tables
from gpuwaste.store.hub.data_inventory import INVENTORY, Text, is_text
from gpuwaste.store.hub.row_deletion import retentions

SCHEMA = schema_tables("hub")


def test_every_text_of_every_table_has_a_kind() -> None:
    """A migration that adds a table, or a column with text, fails here until the inventory says what it is."""
    found = {table: {c.name for c in columns if is_text(c.kind)} for table, columns in SCHEMA.items()}
    assert {table: set(stored.texts) for table, stored in INVENTORY.items()} == found


def test_owners_and_times_are_columns() -> None:
    """What the inventory names is there: the owner of a row, the run's key, the time from which a row is kept."""
    for table, stored in INVENTORY.items():
        names = {column.name for column in SCHEMA[table]}
        assert stored.owner != "user" or stored.texts["user"] is Text.PERSON, table
        assert stored.owner != "run" or {"cluster", "job_id", "run_start"} <= names, table
        assert set(stored.blank) <= set(stored.of(Text.TYPED)), table
    for table, kept in retentions():
        assert kept.column in {c.name for c in SCHEMA[table] if c.kind == "BIGINT" and not c.nullable}, table


def test_a_retention_is_a_key_of_the_configuration() -> None:
    """SECTION.KEY, a number of days."""
    for table, kept in retentions():
        section, key = kept.days.split(".")
        assert isinstance(getattr(getattr(Config(), section), key), int), table


def test_what_names_people_is_deleted_at_some_time_or_said_to_stay() -> None:
    """Only these tables with names are kept for ever: what accounting and its judgement say, and imported history.

    A reservation can be named after its user, as in the runs that ask for it.
    """
    forever = {name for name, stored in INVENTORY.items() if stored.personal and str(stored.kept).startswith("forever")}
    assert forever == {"jobs", "steps", "judged", "day_sums", "day_reasons", "imports", "pages", "machine_reservations"}
