-- How many events each inlet keeps aside.
SELECT inlet, count(*) AS events FROM inlet_quarantine GROUP BY inlet ORDER BY inlet
