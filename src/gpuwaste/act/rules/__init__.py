"""Rules: facts about runs and nodes → actions that a rule wants; the same on history."""
