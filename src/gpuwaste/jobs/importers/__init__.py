"""Bulk import of history: sources return raw pages, pages are kept and parsed, runs are stored."""
