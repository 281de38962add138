"""Models that renew themselves: a challenger is compared with the champion on outcomes, promoted by rule, rolled back.

`renewer` and what it imports need the extra `predict`; `renewal` runs without and imports it when it is there.
"""
