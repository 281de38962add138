"""One file per page: what its template is given, and nothing that reads a store."""
