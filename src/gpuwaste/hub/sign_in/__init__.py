"""Who reads the pages: a browser has no munge."""
