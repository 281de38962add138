-- Adds a demotion that is in force.
INSERT INTO rule_demotions BY NAME
SELECT
    $rule AS rule, $hash AS hash, $now::BIGINT AS at_utc, $judged::BIGINT AS judged, $wrong::BIGINT AS wrong,
    $floor::DOUBLE AS floor, 0::BIGINT AS restored_utc, '' AS restored_by
