-- The $limit newest appeals, of $user or of all, with a status or an id, once for all runs of one.
SELECT
    id, kind, about, arg_min(printed_id, run_start) AS printed_id, "user", at_utc, words, count(*) AS runs, evidence,
    status, outcome, reply, replied_by, replied_utc
FROM appeals
WHERE
    ($user::VARCHAR IS NULL OR "user" = $user)
    AND ($status::VARCHAR IS NULL OR status = $status)
    AND ($id::VARCHAR IS NULL OR id = $id)
GROUP BY ALL
ORDER BY at_utc DESC, printed_id, id
LIMIT $limit
