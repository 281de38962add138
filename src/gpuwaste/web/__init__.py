"""Documents as pages: HTML and SVG from templates, and the files that go with them.

May import documents, analytics, waste and core; `report` makes the same documents into texts and stands beside it.
"""
