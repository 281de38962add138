"""The training host: history in, dataset, training, evaluation, export. May import every library room, no program."""
