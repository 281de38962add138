"""The documents that every reader gets: report, job, top, mails, the score of verdicts.

May import waste, energy, predict, policy, history, store, slurm, wire and core; report, hub and web render what is made
here.
A client imports only the types (fields, *_types, prediction, policies), which need no store.
"""
