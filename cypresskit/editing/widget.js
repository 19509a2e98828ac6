// The workbench as a widget: its channel is the widget's comm.
import {beginWorkbench} from "./workbench.js"

/** @param {{model: any, el: HTMLElement}} widget */
function render({model, el}) {
  const channel = {
    send: (message) => model.send(message),
    listen(hear) {
      const listener = (message) => hear(message)
      model.on("msg:custom", listener)
      return () => model.off("msg:custom", listener)
    },
  }
  return beginWorkbench(el, channel)
}

export default {render}
