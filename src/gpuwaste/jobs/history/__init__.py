"""The job history known at an instant: state by key, windows, following events, replay."""
