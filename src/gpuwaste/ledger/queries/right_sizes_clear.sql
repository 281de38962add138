-- Removes all findings about the size of requests.
DELETE FROM right_sizes
