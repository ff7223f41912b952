// The page of a film. One state, one render. User text only ever reaches the document as textContent.
(() => {
  const { $, make, weight, MEAN, arrows, ramp, named, options, choice, onChoice, themes, clamp } = parts;
  const data = JSON.parse($("data").textContent), { answer, times, prefix, layers } = data;
  const POOL = -1, first = prefix.length;
  const state = { layer: layers.length - 1, head: MEAN, query: POOL, focus: null };
  let colours = null;

  const label = (layer) => (layer.name === "rollout" ? "rollout" : `block ${layer.name}`);
  const marked = (frame) => Boolean(answer.frames) && answer.frames[frame] !== "0";
  const time = (frame) => `${+times[frame].toFixed(3)} s`;

  // What one query gives to each frame: of a head, or in the mean over heads.
  function rowOf(layer, head, query) {
    const chosen = head === MEAN ? layer.weights : [layer.weights[head]];
    const rows = chosen.flatMap((matrix) => (query !== POOL ? [matrix[first + query]] : first ? [matrix[0]] : matrix));
    return times.map((_, frame) => rows.reduce((sum, row) => sum + row[first + frame], 0) / rows.length);
  }

  // --- once --------------------------------------------------------------------------------------------------------

  function begin() {
    $("run").textContent = data.run;
    $("clip").textContent = answer.clip;
    $("label").textContent = answer.label;
    $("spans").textContent = spans();
    $("classes").replaceChildren(...Object.entries(answer.probabilities || {}).slice(0, 5).map(([name, chance]) => {
      const bar = make("i");
      bar.style.width = `${100 * chance}%`;
      return make("li", {}, make("span", { textContent: name }), bar, make("b", { textContent: weight(chance) }));
    }));
    $("strip").replaceChildren(...times.map((_, frame) => {
      const button = make("button", { type: "button" });
      const image = make("img", { src: `data:image/png;base64,${data.png[frame]}`, alt: `frame ${frame}` });
      const bar = make("span", { className: "bar" }, make("i"));
      const name = make("em", { textContent: marked(frame) ? answer.frames[frame] : "" });
      if (answer.frames) name.title = `${answer.frames[frame]} ${weight(answer.frame_probabilities[frame])}`;
      button.classList.toggle("marked", marked(frame));
      button.append(image, bar, make("b"), name, time(frame));
      return button;
    }));
  }

  function spans() {
    if (!answer.frames) return "";
    const found = times.map((_, frame) => frame).filter(marked);
    if (!found.length) return "no frame is marked";
    return `marked: ${found.map((frame) => time(frame)).join(", ")}`;
  }

  // --- each time ---------------------------------------------------------------------------------------------------

  function render() {
    const layer = layers[state.layer], heads = layer.weights.length;
    if (state.head >= heads || heads === 1) state.head = MEAN;
    options($("layer"), layers.map(label), state.layer);
    $("head-field").hidden = heads === 1;
    options($("head"), ["mean", ...data.heads.slice(0, heads).map(String)], state.head + 1);
    const own = state.query !== POOL;
    choice("query", [["pool", data.pooled], ["frame", own ? `frame ${state.query}` : "a frame", own]], own ? "frame" : "pool");
    const row = rowOf(layer, state.head, state.query), top = Math.max(...row, 1e-9);
    [...$("strip").children].forEach((button, frame) => {
      button.querySelector(".bar i").style.height = `${100 * row[frame] / top}%`;
      button.querySelector("b").textContent = weight(row[frame]);
      button.setAttribute("aria-pressed", state.query === frame);
      button.setAttribute("aria-label", `frame ${frame} at ${time(frame)}, weight ${weight(row[frame])}`);
    });
    caption(layer, row);
    every();
    $("strip").dataset.shown = `${layer.name} ${state.head === MEAN ? "mean" : data.heads[state.head]} ${own ? state.query : "pool"}`;
  }

  function caption(layer, row) {
    const who = state.query === POOL ? data.pooled : `frame ${state.query}`;
    const seen = state.focus !== null ? state.focus : row.indexOf(Math.max(...row));
    const most = state.focus === null ? "most, " : "";
    const where = layer.name === "rollout" ? "over all layers" : `in ${label(layer)}`;
    let text = `${who} gives ${most}${weight(row[seen])}, to frame ${seen} (${time(seen)}) ${where}`;
    if (answer.frames) {
      const said = `${answer.frames[seen]} ${weight(answer.frame_probabilities[seen])}`;
      text += `, which is said to be ${said}`;
      const on = row.reduce((sum, value, frame) => sum + (marked(frame) ? value : 0), 0);
      const all = row.reduce((sum, value) => sum + value, 0) || 1, chance = times.filter((_, f) => marked(f)).length / times.length;
      if (chance) text += ` · ${(100 * on / all).toFixed(0)} % of the weight lies on marked frames, ${(100 * chance).toFixed(0)} % by chance`;
    }
    $("caption").textContent = text;
  }

  function every() {
    $("every").replaceChildren(...layers.flatMap((layer, place) => layer.weights.map((_, head) => {
      const alone = layer.weights.length === 1, row = rowOf(layer, head, state.query), top = Math.max(...row, 1e-9);
      const canvas = make("canvas", { width: times.length, height: 1 }), context = canvas.getContext("2d");
      const image = context.createImageData(times.length, 1);
      row.forEach((value, frame) => {
        const level = Math.round(255 * Math.sqrt(value / top));
        for (let c = 0; c < 3; c++) image.data[4 * frame + c] = colours[3 * level + c];
        image.data[4 * frame + 3] = 255;
      });
      context.putImageData(image, 0, 0);
      const name = alone ? label(layer) : `${label(layer)}, ${data.heads[head]}`;
      const button = make("button", { type: "button" }, canvas);
      button.setAttribute("aria-label", name);
      button.setAttribute("aria-pressed", place === state.layer && (alone || head === state.head));
      button.addEventListener("click", () => change({ layer: place, head: alone ? MEAN : head }));
      return make("tr", {}, make("th", { textContent: name, scope: "row" }), make("td", {}, button));
    })));
  }

  function change(some) {
    Object.assign(state, some);
    render();
  }

  // --- hands -------------------------------------------------------------------------------------------------------

  const frameOf = (event) => {
    const button = event.target.closest("#strip button");
    return button ? [...$("strip").children].indexOf(button) : null;
  };
  $("layer").addEventListener("change", () => change({ layer: $("layer").selectedIndex }));
  $("head").addEventListener("change", () => change({ head: $("head").selectedIndex - 1 }));
  onChoice("query", (value) => { if (value === "pool") change({ query: POOL }); });
  $("strip").addEventListener("click", (event) => {
    const frame = frameOf(event);
    if (frame !== null) change({ query: frame === state.query ? POOL : frame });
  });
  for (const [name, gone] of [["mouseover", false], ["focusin", false], ["mouseout", true], ["focusout", true]]) {
    $("strip").addEventListener(name, (event) => {
      const frame = gone ? null : frameOf(event);
      if (frame !== state.focus) {
        state.focus = frame;
        const layer = layers[state.layer];
        caption(layer, rowOf(layer, state.head, state.query));
      }
    });
  }
  $("strip").addEventListener("keydown", (event) => {
    if (event.key === "Escape") return change({ query: POOL });
    const [x, y] = arrows[event.key] || [0, 0];
    if (!x && !y) return;
    event.preventDefault();
    if (event.shiftKey) {
      const heads = layers[state.layer].weights.length;
      return change({
        layer: clamp(state.layer + y, 0, layers.length - 1), head: clamp(state.head + x, MEAN, heads - 1),
      });
    }
    const frame = clamp(frameOf(event) + x + y, 0, times.length - 1);
    $("strip").children[frame].focus();
  });

  begin();
  themes(() => {
    colours = ramp(named("--heat").split(","));
    render();
  });
  document.body.dataset.ready = "yes";
})();
