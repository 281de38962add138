"""The hub: ingest, authentication, API. Imports wire, report and below; never another daemon."""
