"""The figures of the house: how many modules, lines and record types, and what is told twice."""
