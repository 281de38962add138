"""When a job would start: a queue played forward many times with drawn run times, corrected by the site's own errors."""
