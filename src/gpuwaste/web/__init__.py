"""Documents in, pages out: HTML, SVG, and folders of pages that open from disk.

May import analytics, documents and below.
"""
