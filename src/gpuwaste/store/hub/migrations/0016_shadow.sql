-- What bundles beside the model in use said of each submission: JSON, bundle hash -> target -> probability.
ALTER TABLE verdicts ADD COLUMN shadow VARCHAR DEFAULT '{}';
ALTER TABLE verdicts ALTER COLUMN shadow SET NOT NULL;
