// The workbench as a widget: its channel is the widget's comm.
import {bringIntoView} from "../draw/into_view.js"
import {Workbench} from "./workbench.js"

/** @param {{model: any, el: HTMLElement}} widget */
function render({model, el}) {
  const channel = {
    send: (message) => model.send(message),
    listen(hear) {
      const end = () => hear({type: "gone"})
      model.on("msg:custom", hear)
      model.on("comm_live_update", end) // the kernel is being started anew
      return () => {
        model.off("msg:custom", hear)
        model.off("comm_live_update", end)
      }
    },
  }
  const bench = new Workbench(el, channel, () => bringIntoView(el))
  return () => bench.end()
}

export default {render}
