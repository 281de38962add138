-- The findings about the size of the requests of one user.
SELECT cluster, name, gpus, gpu_type, finding
FROM right_sizes
WHERE "user" = $user
ORDER BY cluster, name, gpus, gpu_type, kind
LIMIT 1000
