-- Makes $id the rules that documents use.
UPDATE rules SET standing = id = $id
