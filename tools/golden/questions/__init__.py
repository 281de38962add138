"""What is asked: each module yields names and answers."""
