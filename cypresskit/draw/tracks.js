// Columns of data that follow the frames. Python sends the changes; they are expanded once, into an
// array of frames x cells.

const ARRAYS = {
  float32: Float32Array,
  float64: Float64Array,
  int32: Int32Array,
  uint8: Uint8Array,
  uint16: Uint16Array,
}

/** Expand a track to all its frames. */
export function spread({source, column, changes, text, texts, moves}, count) {
  const first = source.data[column]
  const {frame: frames, cell, value} = changes
  const size = first.length
  const all = new ARRAYS[first.dtype](count * size)
  all.set(first)
  for (let frame = 1, next = 0; frame < count; frame++) {
    all.copyWithin(frame * size, (frame - 1) * size, frame * size)
    for (; next < frames.length && frames[next] === frame; next++)
      all[frame * size + cell[next]] = value[next]
  }
  return {source, column, text, moves, all, size, texts: new Map(texts), drawn: false}
}

/** A track's values in a frame. */
const valuesAt = ({all, size}, frame) => all.subarray(frame * size, (frame + 1) * size)

/** The new data of each source that differs in a frame. */
export function dataAt(tracks, frame) {
  const changed = new Map()
  for (const track of tracks) {
    const {source, column, text, texts} = track
    const now = valuesAt(track, frame).slice()
    const before = source.data[column]
    if (track.drawn && now.every((value, n) => Object.is(before[n], value))) continue
    track.drawn = true
    if (!changed.has(source)) changed.set(source, {...source.data})
    changed.get(source)[column] = now
    if (text) changed.get(source)[text] = Array.from(now, (value) => texts.get(value))
  }
  return changed
}

/** Interpolate gliding columns between two frames, in `changed`. Values from or to NaN jump. */
export function moveBetween(tracks, from, to, part, changed) {
  for (const track of tracks) {
    if (!track.moves) continue
    const {source, column, size} = track
    const [before, after] = [valuesAt(track, from), valuesAt(track, to)]
    let now = null
    for (let n = 0; n < size; n++) {
      const distance = after[n] - before[n]
      if (!distance) continue
      now ??= after.slice()
      now[n] = before[n] + distance * part
    }
    if (now) changed.set(source, {...(changed.get(source) ?? source.data), [column]: now})
  }
  return changed
}
