-- Numbers the different texts of each column of the picked runs in the order of their first occurrence.
CREATE OR REPLACE TEMP TABLE picked_texts AS
SELECT kind, text, row_number() OVER (PARTITION BY kind ORDER BY first_row) - 1 AS code
FROM (
    SELECT 'user' AS kind, "user" AS text, min(row_no) AS first_row FROM picked_jobs GROUP BY "user"
    UNION ALL
    SELECT 'account', account, min(row_no) FROM picked_jobs GROUP BY account
    UNION ALL
    SELECT 'partition', "partition", min(row_no) FROM picked_jobs GROUP BY "partition"
    UNION ALL
    SELECT 'qos', qos, min(row_no) FROM picked_jobs GROUP BY qos
    UNION ALL
    SELECT 'name', name, min(row_no) FROM picked_jobs GROUP BY name
    UNION ALL
    SELECT 'req_tres', req_tres, min(row_no) FROM picked_jobs GROUP BY req_tres
    UNION ALL
    SELECT 'state', state, min(row_no) FROM picked_jobs GROUP BY state
)
