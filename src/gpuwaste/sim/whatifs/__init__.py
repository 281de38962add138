"""Changes to a site's own history, one file each: TITLE, VALUE and `change(case, value)`, which returns a WhatIfChange.

`TITLE` is one line, `VALUE` what may follow the name and `=`, "" for nothing. `change` raises UsageError where the
value or the case does not fit, and NoDataError where no job would be left.
"""
