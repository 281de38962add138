"""One file per view: TITLE, QUESTION, SENTENCES and answer(asking). Files are found without registration."""
