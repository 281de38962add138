"""Mail to users and staff: whom, when, to which address, sent once."""
