"""The commands of gpuwaste, one file each: HELP, arguments(parser), run(options) -> exit code.

A command's imports beyond the options stand in its body, so that --help and the other commands do not pay for them.
"""
