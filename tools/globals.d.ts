// What the pictures' scripts share with the page, for the type checker.
declare var Bokeh: any
declare var cypresskitFormats: Map<string, Record<string, any>>
declare var cypresskitScripts: number
declare var cypresskitClock: boolean
declare var cypresskitColors: boolean
declare var $key: number
interface IntersectionObserverInit {
  scrollMargin?: string // newer than TypeScript's list
}
declare var cypresskitWritten: (written: number) => void
declare var $written: number
