-- The energy counter of each GPU as its last reading in this file left it.
SELECT uuid, sum(mj)::BIGINT AS energy_mj
FROM (
    SELECT g.uuid, s.energy_step_mj::BIGINT AS mj
    FROM sample s JOIN gpu g ON g.id = s.gpu
    WHERE s.energy_step_mj IS NOT NULL
    UNION ALL
    SELECT uuid, mj FROM energy_jump
)
GROUP BY uuid;
