-- Sets one mark.
INSERT OR REPLACE INTO marks VALUES ($key, $value)
