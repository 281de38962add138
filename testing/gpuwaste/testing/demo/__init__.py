"""`make demo`: the main job on a real cluster, checked against the load programs' own logs; or a recording of it."""
