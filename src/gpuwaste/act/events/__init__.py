"""Events sent to other systems and received from them: outlets, inlets, their metrics."""
