-- How many notices of a period there are.
SELECT count(*) AS notices FROM notices WHERE kind = $kind AND period_end = $period_end AND dry = $dry
