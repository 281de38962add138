-- Forgets the bad rows of lines that are read again.
DELETE FROM quarantine WHERE source = $source AND line >= $line AND line < $line + $lines
