-- Whether accounting told of any run's steps.
SELECT EXISTS (
    FROM jobs
    WHERE n_steps IS NOT NULL
-- include: scope
) AS known
