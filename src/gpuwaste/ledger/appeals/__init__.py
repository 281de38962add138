"""Appeals: the owner of a job says that a judgement, advice or action was wrong; an operator's reply closes it."""
