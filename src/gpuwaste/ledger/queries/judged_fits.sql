-- Whether a run has the state, partition, part of the name and finding that are asked for; NULL is "any".
(
    ($state IS NULL OR state = $state)
    AND ($partition IS NULL OR "partition" = $partition)
    AND ($name IS NULL OR contains(lower(name), lower($name)))
    AND ($finding IS NULL OR list_contains(cause_kinds, $finding))
)
