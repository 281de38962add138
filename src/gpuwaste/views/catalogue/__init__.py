"""One file per view: TITLE, QUESTION, SENTENCES and answer(asking). A file is found by being here."""
