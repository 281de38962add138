"""The whole system as views: one file per view in `views/` with its question, SQL, chart and facts; facts become words.

May import waste, predict, policy, history, store, slurm, wire and core. Renderings (SVG, HTML, CSV, text) are made in
web and report from the types of `chart` and `document`.
"""
