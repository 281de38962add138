    -- Ends a WHERE: runs of the clusters that are asked for.
    AND ($clusters IS NULL OR list_contains($clusters::VARCHAR[], cluster))
