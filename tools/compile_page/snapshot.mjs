// Brings Python up as the compile page needs it, and writes its memory into a file, compressed:
//
//     node snapshot.mjs FOLDER ARCHIVE KERNEL FILE
//
// FOLDER holds Pyodide's core, ARCHIVE the Python of the page, KERNEL a text that it answers once
// before. A reader's browser begins with that memory: it neither starts an interpreter nor imports
// a module.
import {readFileSync, writeFileSync} from "node:fs"
import {resolve} from "node:path"
import {pathToFileURL} from "node:url"
import {gzipSync} from "node:zlib"

const [folder, archive, kernel, file] = process.argv.slice(2)
const {loadPyodide} = await import(pathToFileURL(resolve(folder, "pyodide.mjs")).href)

// Only a Python that is meant for a snapshot can be written down: this pinned version of Pyodide
// has the option, and doesn't document it.
const python = await loadPyodide({indexURL: `${resolve(folder)}/`, _makeSnapshot: true})
python.unpackArchive(new Uint8Array(readFileSync(archive)), "zip", {extractDir: "/page"})
python.globals.set("kernel", readFileSync(kernel, "utf-8"))
python.runPython(`
import sys
sys.path.insert(0, "/page")
import answering
answering.warm_up(kernel)
del kernel

import gc
gc.collect()
`)
writeFileSync(file, gzipSync(python.makeMemorySnapshot(), {level: 9}))
