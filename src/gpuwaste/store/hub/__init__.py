"""The hub's database: connections, transactions, what commits change, backup, erasure, inbox. It knows no subject."""
