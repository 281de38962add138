"""Schedulers, one file each: TITLE, and `starts(jobs, total)`, which returns the start of each job in seconds.

`jobs` are n jobs in the order of submission (trace.Planned), `total` the processors of the machine. Every job fits
it. A scheduler that orders jobs by who submits them has `starts_by_user(jobs, total, user)` instead, `user` [n]
numbers users. The events of one instant are taken in the order end, submission, start.
"""
