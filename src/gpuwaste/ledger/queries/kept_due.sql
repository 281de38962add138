-- How many runs with GPUs have not ended by $until.
SELECT count(*) AS runs FROM jobs WHERE gpus > 0 AND "start" IS NOT NULL AND ("end" IS NULL OR "end" > $until)
