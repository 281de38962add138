"""Waits learnt from a site's history: what is known at a submission, as numbers, and the trees that were made of it.

Training, the benchmark and the hub compute the same features with the code here.
"""
