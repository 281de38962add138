-- How many events each outlet could not hand over.
SELECT outlet, count(*) AS events FROM dead_letters GROUP BY outlet ORDER BY outlet
