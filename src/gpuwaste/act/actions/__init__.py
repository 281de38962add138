"""Actions: what may be done to a run or a node, one file each in kinds/: its options, how it is seen and done."""
