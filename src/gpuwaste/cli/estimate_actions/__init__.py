"""The actions of `gpuwaste estimate`, one file each: HELP, arguments(parser), run(options) -> exit code.

As for commands, imports beyond the options are in a function's body.
"""
