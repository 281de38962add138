"""The commands of gpuwaste: a file each with HELP, EXAMPLES, arguments(parser), run(options) -> exit code.

A command that has only actions is a folder: HELP and EXAMPLES in its __init__.py, and a file for each action.
A command's imports beyond the options are in its functions, so that --help and the other commands do not pay for them.
"""
