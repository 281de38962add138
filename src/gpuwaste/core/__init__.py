"""Values, units, clock, errors, configuration: shared by every room, without domain logic. Imports no other room."""
