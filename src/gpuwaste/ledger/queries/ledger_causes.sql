-- Keeps the findings of the judged runs: the JSON array $rows.
CREATE OR REPLACE TEMP TABLE ledger_causes AS
SELECT unnest(
    from_json_strict($rows::JSON, '[{"place": "BIGINT", "cause_kinds": ["VARCHAR"], "cause_s": ["DOUBLE"], "causes": "VARCHAR"}]'),
    recursive := true
)
