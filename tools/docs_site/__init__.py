"""The documentation as a static site: pages are laid out for MkDocs, which then builds the site."""
