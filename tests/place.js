// Where on the page the cell of a picture's source is: [x, y] of [the source's name, the cell's number, and how far from its center].
([name, cell, right = 0, down = 0]) => {
    const doc = Bokeh.documents.findLast(d => d.get_model_by_name(name)), {data} = doc.get_model_by_name(name)
    const drawn = (m) => m.type === "Plot" && m.renderers.some(r => r.data_source?.name === name)
    const view = Bokeh.index.get_one([...doc.all_models].find(drawn))
    const box = view.el.getBoundingClientRect(), {x_scale, y_scale} = view.frame
    return [box.x + x_scale.compute(data.x[cell] + right), box.y + y_scale.compute(data.y[cell] + down)] }
