"""The field as a virtual machine: the same tree with a kernel of its own in qemu, where limits of cgroups are in force.

`image.py` makes its disk, `qemu.py` its command line, `port.py` asks the program `guest/port.py` in it, `machine.py` is
the machine, and each file of `checks/` asserts one thing that the namespaces cannot show.
"""
