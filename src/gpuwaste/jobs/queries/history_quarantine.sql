-- Rows kept aside, by source and reason, with an example; the reason's own numbers and names are left out.
SELECT source, regexp_replace(reason, '''[^'']*''|"[^"]*"|\d+', '*', 'g') AS reason, count(*) AS rows,
    min(line) AS first_line, any_value(raw ORDER BY line) AS example
FROM quarantine
GROUP BY ALL
ORDER BY rows DESC, source
LIMIT $limit
