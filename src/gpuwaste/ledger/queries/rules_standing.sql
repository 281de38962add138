-- The rules that stand, where their thresholds are these.
SELECT id, judged_until FROM rules WHERE standing AND thresholds = $thresholds
