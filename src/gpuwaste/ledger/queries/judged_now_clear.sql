-- Forgets the runs that a document was to sum.
DELETE FROM judged_now
