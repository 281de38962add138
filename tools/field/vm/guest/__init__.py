"""What runs in the virtual machine, and is copied into its disk."""
