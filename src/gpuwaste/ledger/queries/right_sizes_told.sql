-- The findings about the size of requests, for advisors: the newest $most.
SELECT "user", "partition", name, gpus, gpu_type, finding
FROM right_sizes
ORDER BY ended DESC, cluster, "user", name, gpus, gpu_type, kind
LIMIT $most
