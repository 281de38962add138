"""Actions in the hub: taken from rules, approved by people, lent to the actor, mailed; each step is told."""
