"""Rules: facts about runs and nodes → actions that a rule wants; the same on history.

May import documents, waste, policy, events, actions, store and core. Nothing here acts: an IntentSink gets the intents.
"""
