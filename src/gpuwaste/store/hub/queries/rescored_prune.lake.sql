CREATE OR REPLACE TEMP TABLE removed AS SELECT job_id FROM rescored WHERE at_utc < $before
;
DELETE FROM rescored WHERE at_utc < $before
;
SELECT job_id FROM removed
