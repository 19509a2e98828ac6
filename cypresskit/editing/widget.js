// The workbench as a widget. Its channel is another widget, which needs no module
// (widget_channel.py).
import {bringIntoView} from "../draw/into_view.js"
import {Workbench} from "./workbench.js"

// Hello is sent again until it is answered: the first one may wait behind a running cell, since
// JupyterLab doesn't yet know then which thread is free.
const AGAIN_MS = 1000

/** @param {{model: any, el: HTMLElement}} widget */
async function render({model, el}) {
  const python = await model.widget_manager.get_model(model.get("channel"))
  let again = 0
  let isOpen = false
  const channel = {
    send(message) {
      python.send(message)
      if (message.type === "hello") again = setInterval(() => python.send(message), AGAIN_MS)
    },
    listen(hear) {
      const take = (message) => {
        const isRepeated = isOpen && message.type === "state"
        isOpen ||= message.type === "state"
        if (isOpen) clearInterval(again)
        if (!isRepeated) hear(message)
      }
      const end = () => hear({type: "gone"})
      python.on("msg:custom", take)
      python.on("comm_live_update", end) // the kernel is being started anew
      return () => {
        python.off("msg:custom", take)
        python.off("comm_live_update", end)
      }
    },
  }
  const bench = new Workbench(el, channel, () => bringIntoView(el))
  return () => {
    clearInterval(again)
    bench.end()
  }
}

export default {render}
