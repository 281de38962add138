"""One file for each page: a function from documents to HTML."""
