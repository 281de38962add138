"""When a job would start and what request would serve it better: candidates, expectation, choice.

Imports sim, advice, the layer of analytics and below.
"""
