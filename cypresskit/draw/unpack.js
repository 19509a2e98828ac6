;(async () => {
  if (window.cypresskitScripts === $key) return
  window.cypresskitScripts = $key
  const packed = Uint8Array.from(atob("$packed"), (letter) => letter.charCodeAt(0))
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"))
  const text = await new Response(stream).text()
  document.head.append(Object.assign(document.createElement("script"), {text}))
})()
