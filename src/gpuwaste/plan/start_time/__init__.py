"""When a job would start: a queue played forward with drawn run times, corrected by the site's own errors."""
