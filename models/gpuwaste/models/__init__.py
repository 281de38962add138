"""The training host: from history to dataset, training, evaluation and export. May import every library, no program."""
