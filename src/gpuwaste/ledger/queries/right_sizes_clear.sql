-- Removes the findings about the size of the requests of the users $users on $cluster.
DELETE FROM right_sizes WHERE cluster = $cluster AND "user" IN (SELECT unnest($users::VARCHAR[]))
