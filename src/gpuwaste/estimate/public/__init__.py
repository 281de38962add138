"""Step times from public measurements: what is shipped, so that an estimate has a time before any calibration."""
