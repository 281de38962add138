"""When a job would start: a queue simulated forward with drawn run times, corrected by the site's own errors."""
