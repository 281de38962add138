"""Programs that work on this repository; none of them is installed."""
