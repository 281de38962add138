-- Notes that all columns were taken from a page.
UPDATE pages SET version = $version WHERE import_id = $import_id AND number = $number
