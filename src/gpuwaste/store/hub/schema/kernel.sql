-- How far parts of the hub are: key sacct:CLUSTER holds the UTC second up to which accounting was read.
CREATE TABLE marks (key VARCHAR PRIMARY KEY, value BIGINT NOT NULL);
