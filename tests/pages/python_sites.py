"""A site's parts that run Python."""

import nbformat
from needs import demand

from tools import bench_page, workbook

LAUNCH = "import cypresskit as ck; print(ck.simulate('sgemm_tn', {}).clocks)"


def make_python_site(folder, lessons=()):
    """Write a site of a first page and of the two parts that run Python, of which the workbook has
    the results of the launches in ``lessons``, or else of one. Return its folder, and why it has
    no such parts, or "".
    """
    launching = folder / "launch.ipynb"
    cell = nbformat.v4.new_code_cell(LAUNCH.format(256), id="launch")
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), launching)
    site = folder / "site"
    site.mkdir()
    (site / "index.html").write_text("<!DOCTYPE html><title>The site</title>")
    try:
        bench_page.write_page(site / "bench")
        workbook.write_workbook(site / "workbook", lessons or [launching])
    except bench_page.NotAvailable as why:
        return site, str(why)
    return site, ""


def require(made):
    """The folder of that site. Without Python for browsers the test is skipped."""
    folder, problem = made
    return demand(not problem and folder, "Python for browsers", problem)
