-- Notes what a page gave when it was parsed again.
UPDATE pages SET runs = $runs, bad = $bad, notes = $notes, version = $version
WHERE import_id = $import_id AND number = $number
