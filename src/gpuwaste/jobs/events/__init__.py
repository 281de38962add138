"""The stream of what happened: its kinds, their envelope, the store."""
