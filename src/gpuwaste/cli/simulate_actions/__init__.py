"""The actions of `gpuwaste simulate`, one file each: HELP, arguments(parser), run(options) -> exit code.

As for commands, imports beyond the options are in a function's body.
"""
