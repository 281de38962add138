-- Notes a page that was read.
INSERT INTO pages BY NAME
SELECT $import_id AS import_id, $number AS number, $key AS key, $place AS place, $digest AS digest, $size_b AS size_b,
    $packed_b AS packed_b, $position AS position, $until AS until, $line AS line, $lines AS lines, $runs AS runs,
    $changed AS changed, $bad AS bad, $notes AS notes, $now AS at_utc, $version AS version
