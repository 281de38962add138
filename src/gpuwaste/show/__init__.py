"""How anything is shown: text, units and words, pages, charts, CSV and machine formats. Imports core."""
