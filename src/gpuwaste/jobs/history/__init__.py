"""What was known of jobs at an instant: state by key, windows, following events, replay."""
