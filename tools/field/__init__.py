"""The field on this machine: Debian 13 under its own systemd with unified cgroups, a Slurm site, our packages in it.

`boot.py` becomes a machine's process 1, `machine.py` starts and ends one, `site.py` gives it Slurm, `install.py` takes
the install page's steps, and each file of `checks/` asserts one thing.
"""
