"""Reports of users, jobs, accounts and clusters: documents, text, pages."""
