/** The page in a frame of a notebook: what it asks for goes to Python, and the answers to it. */

export default {
  /** @param {{ model: any, el: HTMLElement }} given */
  render({ model, el }) {
    const frame = document.createElement("iframe");
    frame.title = "ptxlab lab";
    frame.style.cssText = `box-sizing:border-box; display:block; width:100%; height:${model.get("height")}px; border:1px solid #8886; border-radius:6px`;
    frame.srcdoc = model.get("page");
    /** @param {MessageEvent} event */
    const ask = (event) => {
      if (event.source === frame.contentWindow && event.data?.ptxlab) model.send({ name: event.data.ptxlab });
    };
    /** @param {any} answer */
    const pass = (answer) => frame.contentWindow?.postMessage(answer, "*");
    window.addEventListener("message", ask);
    model.on("msg:custom", pass);
    el.appendChild(frame);
    return () => {
      window.removeEventListener("message", ask);
      model.off("msg:custom", pass);
    };
  },
};
