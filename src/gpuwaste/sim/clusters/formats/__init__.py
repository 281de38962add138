"""Formats of a machine's description, one file each: TITLE, `reads(path, head)`, and `read(path)`, a `Described`.

`reads` says by the path and the first bytes of the file whether it is of that format; a directory has no bytes.
"""
