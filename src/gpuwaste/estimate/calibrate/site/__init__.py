"""The files that calibration copies into a job's directory; they run with the site's Python, without gpuwaste.

They need jax or torch, otherwise only the standard library and numpy, and import nothing of gpuwaste.
"""
