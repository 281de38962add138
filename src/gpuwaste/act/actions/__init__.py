"""Actions on a run or a node, one file each in kinds/: its options, how it is checked and done."""
