"""The checks of `gpuwaste doctor`, one file each: PLACE, NAME, ROLES and check(around) -> lines.

A file here needs no registration: it runs where the host has one of its ROLES, in the order of PLACE. May import
everything but daemons, which it queries over their sockets.
"""
