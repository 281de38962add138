"""A look at a cluster before anything is installed: accounting read politely into a folder, and what it says."""
