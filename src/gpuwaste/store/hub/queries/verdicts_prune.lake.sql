CREATE OR REPLACE TEMP TABLE removed AS SELECT id FROM verdicts WHERE at_utc_us < $before_us
;
DELETE FROM verdicts WHERE at_utc_us < $before_us
;
SELECT id FROM removed
