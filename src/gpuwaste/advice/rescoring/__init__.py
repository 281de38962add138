"""Running jobs predicted again: at their start, ten minutes later, before their limit; told, never acted on."""
