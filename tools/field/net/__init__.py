"""Three machines of the field on one network: a controller and two nodes, with cables that can be cut and slowed down.

`switch.py` forwards the frames of the machines, `cables.py` plugs them in and says what happens to their frames,
`hosts.py` starts the machines, `cluster.py` gives them Slurm, `roles.py` takes the install page's steps for each role,
and each file of `checks/` asserts one thing.
"""
