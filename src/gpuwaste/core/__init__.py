"""Values, units, clock, errors and configuration that every part shares. Imports the standard library only."""
