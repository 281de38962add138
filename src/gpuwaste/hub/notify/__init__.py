"""Mail to users and staff: when, to which address, sent once. The rules are waste's, the words report's."""
