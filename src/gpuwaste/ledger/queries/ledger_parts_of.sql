-- Unknown and exempt time of the GPUs that ledger_devices_of returns, by reason.
SELECT * FROM ledger_parts
SEMI JOIN (SELECT place FROM ledger_rows WHERE NOT $candidates OR candidate <> []) USING (place)
