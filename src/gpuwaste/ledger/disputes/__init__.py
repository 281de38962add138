"""What owners say of the judgement on their runs."""
