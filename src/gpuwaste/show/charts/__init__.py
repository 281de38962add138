"""Charts as SVG without style attributes: colours are classes of gpuwaste.css."""
