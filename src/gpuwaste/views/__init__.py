"""The whole system as views: one file per view in catalogue/ with its question, SQL, chart and facts; narrative."""
