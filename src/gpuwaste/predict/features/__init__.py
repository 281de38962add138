"""The features, a file for each group. May import predict's table, windows and request columns."""
