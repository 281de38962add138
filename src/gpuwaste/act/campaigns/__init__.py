"""Campaigns: advice, digests and rules that a share of the users does not get, and the effect that this measures."""
