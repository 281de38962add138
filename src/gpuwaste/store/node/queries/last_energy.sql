-- The energy counter of each GPU as its last reading in this file left it.
SELECT g.uuid, sum(s.energy_step_mj)::BIGINT AS energy_mj
FROM sample s JOIN gpu g ON g.id = s.gpu
WHERE s.energy_step_mj IS NOT NULL
GROUP BY g.uuid;
