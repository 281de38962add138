"""History in bulk: sources give raw pages, pages are kept and parsed, runs go into the store."""
