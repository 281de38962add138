"""Charts of GPU time by level."""
