import shutil, json, time
from pathlib import Path
def test_look(lab, page):
    page.set_viewport_size({"width":1366,"height":768})
    for p in Path("/tmp/teach/nb").glob("0[0369]*.ipynb"): shutil.copy(p, lab.root)
    name="03_bundles.ipynb"
    lab.open(page, name)
    page.wait_for_timeout(3000)
    print("dirty", page.evaluate("() => window.jupyterapp.shell.currentWidget.context.model.dirty"))
    now = page.evaluate("() => window.jupyterapp.shell.currentWidget.context.model.toJSON()")
    old = json.loads((lab.root/name).read_text())
    print("meta", now["metadata"]== old["metadata"])
    for a,b in zip(now["cells"], old["cells"]):
        a["metadata"].pop("trusted",0)
        for k in set(a)|set(b):
            if a.get(k)!=b.get(k): print(k, str(a.get(k))[:100], str(b.get(k))[:100]); 
    md=page.locator(".jp-MarkdownCell .jp-RenderedMarkdown").nth(0)
    md.dblclick(); page.wait_for_timeout(700)
    page.screenshot(path="/tmp/teach/lab1.png")
    page.evaluate("() => window.jupyterapp.shell.currentWidget.content.activeCellIndex = 12")
    for i in range(2, 40):
        page.evaluate("i => {const c=window.jupyterapp.shell.currentWidget.content; c.activeCellIndex=i; c.scrollToItem(i)}", i)
        src = page.evaluate("i => window.jupyterapp.shell.currentWidget.content.widgets[i].model.sharedModel.source", i)
        page.wait_for_timeout(150)
        if "predict(" in src: break
    page.wait_for_timeout(1000)
    page.screenshot(path="/tmp/teach/lab2.png")
    lab.run_all(page, 200)
    page.wait_for_timeout(1500)
    page.evaluate("i => {const c=window.jupyterapp.shell.currentWidget.content; c.activeCellIndex=i; c.scrollToItem(i, 'start')}", i)
    page.wait_for_timeout(1500)
    page.screenshot(path="/tmp/teach/lab3.png")
