-- How many pages were read by a version which took fewer columns from them.
SELECT count(*) AS pages FROM pages WHERE version < $version
