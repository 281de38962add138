-- The texts of each column in the order of their codes.
SELECT kind, text FROM picked_texts ORDER BY kind, code
