"""Reactions to events: events sent to other systems, rules, actions, mail. Imports advice, sim and below."""
