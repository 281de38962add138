"""Views of the whole system: one file per view in catalogue/ with its question, SQL, chart and facts; narrative."""
