"""Mail to users and staff: to whom, when, to which address, sent once."""
