-- How many more GPUs were reported of each picked run than accounting gives it, and how each GPU was attributed.
SELECT g.place, g.node, g.gpu_uuid, g.map_source, g.confidence, s.beyond
FROM ledger_gpus g
JOIN ledger_spans s USING (place)
