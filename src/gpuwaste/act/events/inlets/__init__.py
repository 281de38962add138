"""Ways in: each file has SETTINGS, the type of its table, and `make(settings, where)`; it is found by being here."""
