-- Whether any GPU was seen by an agent.
SELECT (EXISTS (FROM hours) OR EXISTS (FROM days)) AS seen
