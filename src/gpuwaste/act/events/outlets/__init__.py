"""The outlets: each file is one way to hand events over, and is found by being here."""
