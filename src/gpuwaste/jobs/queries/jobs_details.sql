-- Sets the new details where the runs are: written anew, these would leave the order of users (jobs_pick). Returns
-- their times.
-- include: jobs_details_set
RETURNING submit, "start", "end"
