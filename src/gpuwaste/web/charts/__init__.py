"""A chart as data in, SVG text out: one file per kind of chart.

The SVG is made by hand, on the server: of the libraries that were measured for such charts each one breaks the strict
Content-Security-Policy of the pages, needs a script, or weighs hundreds of kilobytes; a stacked year is drawn faster
without one, and 100,000 points that are counted on a grid here take some 25 kB where a library sends 900. No colour is
named here: a mark has a class for its role, and `static/charts.css` has the colours for light, dark and print.
"""

from gpuwaste.web.charts.draw import NARROW, WIDE, chart_file, chart_svg, file_policy

__all__ = ["NARROW", "WIDE", "chart_file", "chart_svg", "file_policy"]
