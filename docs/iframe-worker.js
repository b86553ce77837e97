// Search in a site that is read from a disk. Browsers start no worker from there, so the worker's
// script runs in a hidden frame. The name tells mkdocs-material's offline plugin that the site brings
// its own, and that none has to be fetched.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      this.inner = frame.contentWindow
      this.inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }))
      const script = this.inner.document.createElement("script")
      script.src = address
      this.ready = new Promise((loaded) => (script.onload = loaded))
      this.inner.document.body.append(script)
    }

    postMessage(data) {
      this.ready.then(() => this.inner.dispatchEvent(new MessageEvent("message", { data })))
    }
  }
}
