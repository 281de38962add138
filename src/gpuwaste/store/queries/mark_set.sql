-- Sets one mark.
MERGE INTO marks m
USING (SELECT $key AS key, $value AS value) n
ON m.key = n.key
WHEN MATCHED THEN UPDATE SET value = n.value
WHEN NOT MATCHED THEN INSERT BY NAME
