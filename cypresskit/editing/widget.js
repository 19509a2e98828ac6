// The workbench as a widget: its channel is the widget's comm.
import {bringIntoView} from "../draw/into_view.js"
import {Workbench} from "./workbench.js"

// Hello is sent again after these milliseconds. The first one waits behind a running cell: only later
// does JupyterLab send a comm's messages to a thread of their own (a subshell).
const AGAIN_MS = [1000, 3000, 9000, 27000]
const DEAF_MS = 300 // after Python is done with a hello, its answer is here, or never comes

/** @param {{model: any, el: HTMLElement}} widget */
function render({model, el}) {
  const timers = new Set()
  const after = (milliseconds, act) => timers.add(setTimeout(act, milliseconds))
  let unanswered = 0 // of the hellos sent
  let isBegun = false
  let isDeaf = false // has been said

  /** Tell Python that its answers don't arrive: it makes a new widget. */
  const tellDeaf = () => {
    if (!isBegun && !isDeaf) model.send({type: "deaf"})
    isDeaf = true
  }
  const status = ({content}) => {
    if (content.execution_state === "idle" && !isBegun) after(DEAF_MS, tellDeaf)
  }
  const sendHello = (hello) => {
    if (isBegun || isDeaf) return
    unanswered++
    model.send(hello, {iopub: {status}})
  }
  const isRepeated = ({type}) => {
    if (type !== "state") return false
    const isOld = isBegun && unanswered > 0
    unanswered--
    isBegun = true
    return isOld
  }
  const channel = {
    send(message) {
      if (message.type !== "hello") return model.send(message)
      sendHello(message)
      for (const milliseconds of AGAIN_MS) after(milliseconds, () => sendHello(message))
    },
    listen(hear) {
      const take = (message) => {
        if (!isRepeated(message)) hear(message)
      }
      const end = () => {
        unanswered = 0
        hear({type: "gone"})
      }
      model.on("msg:custom", take)
      model.on("comm_live_update", end) // the kernel is being started anew
      return () => {
        model.off("msg:custom", take)
        model.off("comm_live_update", end)
      }
    },
  }
  const bench = new Workbench(el, channel, () => bringIntoView(el))
  return () => {
    for (const timer of timers) clearTimeout(timer)
    bench.end()
  }
}

export default {render}
