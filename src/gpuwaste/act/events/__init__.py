"""Events handed over to other systems and taken from them: outlets, inlets, their figures."""
