-- When the first of the judged runs ended.
SELECT min("end") AS first FROM judged
