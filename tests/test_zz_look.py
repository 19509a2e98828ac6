import json
import shutil
from pathlib import Path


def test_look(lab, page):
    page.set_viewport_size({"width": 1366, "height": 768})
    for p in Path("/tmp/teach/nb").glob("0[046]*.ipynb"):
        shutil.copy(p, lab.root)
    lab.open(page, "04_registers_and_wavefronts.ipynb")
    page.wait_for_timeout(4000)
    print("dirty", page.evaluate("() => window.jupyterapp.shell.currentWidget.context.model.dirty"))
    now = page.evaluate("() => window.jupyterapp.shell.currentWidget.context.model.toJSON()")
    old = json.loads((lab.root / "04_registers_and_wavefronts.ipynb").read_text())
    print("meta", now["metadata"], old["metadata"])
    for a, b in zip(now["cells"], old["cells"]):
        for k in set(a) | set(b):
            if a.get(k) != b.get(k) and k not in ("source", "outputs"):
                print(k, a.get(k), b.get(k))
    page.screenshot(path="/tmp/teach/lab1.png")
    lab.run_all(page, 200)
    page.wait_for_timeout(1500)
    s = page.locator(".widget-vbox:has-text('Your guess')").first
    s.scroll_into_view_if_needed()
    page.wait_for_timeout(800)
    page.screenshot(path="/tmp/teach/lab2.png")
    for i in range(3):
        page.mouse.wheel(0, 420)
        page.wait_for_timeout(700)
        page.screenshot(path=f"/tmp/teach/lab{3 + i}.png")
    # double click on markdown
    md = page.locator(".jp-MarkdownCell .jp-RenderedMarkdown").nth(1)
    md.scroll_into_view_if_needed()
    md.dblclick()
    page.wait_for_timeout(500)
    print(
        "editors",
        page.locator(".jp-MarkdownCell .jp-mod-active.cm-editor, .jp-MarkdownCell:not(.jp-mod-rendered)").count(),
    )
