-- The energy counter of each GPU as its last reading up to $until_us left it.
SELECT uuid, sum(mj)::BIGINT AS energy_mj
FROM (
    SELECT g.uuid, t.t_us, s.energy_step_mj::BIGINT AS mj
    FROM sample s JOIN gpu g ON g.id = s.gpu JOIN tick t ON t.id = s.tick
    WHERE s.energy_step_mj IS NOT NULL
    UNION ALL
    SELECT j.uuid, t.t_us, j.mj FROM energy_jump j JOIN tick t ON t.id = j.tick
)
WHERE t_us <= $until_us
GROUP BY uuid;
