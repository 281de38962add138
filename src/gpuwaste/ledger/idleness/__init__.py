"""Whether a run or a node is idle, for programs of others that end idle ones: yes, no or unknown."""
