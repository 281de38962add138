-- The runs that a document judges or has read itself.
SELECT * FROM judged_now
