"""The checks of `gpuwaste doctor`, one file each: PLACE, NAME, ROLES and check(around) -> lines.

A file that is here is found and run where the host has one of its ROLES, in the order of PLACE. May import everything
but daemons, which it asks over their sockets.
"""
