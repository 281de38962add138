"""Fits the step times that are shipped to measurements that others have published, and judges them."""
