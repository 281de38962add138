-- Adds rules by which nothing was judged yet.
INSERT INTO rules
SELECT coalesce(max(id), 0) + 1, $version, $thresholds, $standing, 0 FROM rules
