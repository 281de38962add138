"""The hub's database: connections, transactions, changes by commits, backup, erasure, inbox. It knows no subject."""
