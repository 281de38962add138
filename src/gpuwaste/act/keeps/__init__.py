"""Keeps: the owner of a run, a coordinator or an operator makes the rules wait for it, within the site's budget."""
