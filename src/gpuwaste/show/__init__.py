"""Output in all formats: text, units and words, pages, charts, CSV and machine formats. Imports core."""
