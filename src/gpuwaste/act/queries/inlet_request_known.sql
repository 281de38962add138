-- Whether an inlet has taken a request.
SELECT 1 AS known FROM inlet_requests WHERE inlet = $inlet AND digest = $digest LIMIT 1
