"""What follows from what happens: events told to others, rules, actions, mail. Imports advice, sim and below."""
