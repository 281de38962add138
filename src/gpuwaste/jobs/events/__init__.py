"""The event stream: its kinds, their envelope, the store."""
