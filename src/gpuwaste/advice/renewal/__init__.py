"""Automatic model renewal: a challenger is compared with the champion on outcomes, promoted or rolled back."""
