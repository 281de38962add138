"""Models that renew themselves: a challenger is compared with the champion on outcomes, promoted by rule, rolled back when worse."""
