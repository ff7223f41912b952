// The page of a picture. One state, one render: every control changes the state and asks for a frame.
//
//   numbers() unpacks a layer's weights -> rowOf() picks a head and a query -> cells over the picture
//
// User text only ever reaches the document as textContent.
(() => {
  const {
    $, make, number, weight, clamp, MEAN, arrows, soon, numbers, scaleOf, named, ramp, painted, sizeCanvas, choice, onChoice,
    themes, onResize,
  } = parts;
  const data = JSON.parse($("data").textContent);
  const ALL = -1; // in place of a query: the mean of all cells
  const [HEIGHT, WIDTH] = data.picture.size;

  const state = {
    section: 0, layer: 0, head: MEAN, query: null, held: false, cell: null, opacity: 0.62, smooth: false, windows: true,
    every: false, fill: 0,
  };
  let current = null; // what is on screen: {section, layer, query, key, whole, row, ...}
  let colours, geometry;
  const picture = new Image();

  const sectionNow = () => data.sections[state.section];
  const layerNow = () => sectionNow().layers[state.layer];
  const overPicture = () => !(sectionNow().id === "bias" || (sectionNow().id === "position" && state.every));

  // --- rows --------------------------------------------------------------------------------------------------------

  // Whose look is shown before anything is pointed at: the class token's where the head reads it, else all cells'.
  function firstQuery(axis) {
    if (!axis.grid) return 0;
    const read = axis.names.indexOf(data.reads[0]), { id } = sectionNow();
    if (read >= 0 && id !== "position") return read;
    if (["attention", "mixing"].includes(id)) return ALL;
    return axis.names.length + Math.floor(axis.rows / 2) * axis.columns + Math.floor(axis.columns / 2);
  }

  const queryNow = () => (state.query === null ? firstQuery(data.axes[layerNow().query]) : state.query);

  const windowOf = new Map(); // windows number -> the window of each position
  function windowNumbers(layer) {
    if (!windowOf.has(layer.windows)) {
      const found = [];
      data.windows[layer.windows].forEach((cells, w) => cells.forEach((cell) => { if (cell >= 0) found[cell] = w; }));
      windowOf.set(layer.windows, found);
    }
    return windowOf.get(layer.windows);
  }

  const lengthOf = (axis) => axis.names.length + (axis.grid ? axis.rows * axis.columns : 0);

  // One head (or their mean), one query (or the mean of all), over the whole key axis.
  function rowOf(layer, whole, head, query) {
    const length = lengthOf(data.axes[layer.key]), row = new Float32Array(length), table = scaleOf(layer);
    const columns = layer.windows === null ? length : data.windows[layer.windows][0].length;
    const heads = layer.heads.length || 1, size = layer.queries.length * columns;
    const chosen = head === MEAN || !layer.heads.length ? [...Array(heads).keys()] : [head];
    const rows = query === ALL ? [...layer.queries.keys()] : [layer.queries.indexOf(query)];
    for (const r of rows) {
      if (r < 0) continue;
      const cells = layer.windows === null ? null : data.windows[layer.windows][windowNumbers(layer)[layer.queries[r]]];
      for (const h of chosen) {
        const start = h * size + r * columns;
        for (let k = 0; k < columns; k++) {
          const place = cells ? cells[k] : k;
          if (place >= 0) row[place] += table[whole[start + k]];
        }
      }
    }
    for (let k = 0; k < length; k++) row[k] /= chosen.length * rows.length;
    return row;
  }

  // --- what is chosen ----------------------------------------------------------------------------------------------

  function change(changes) {
    const before = { ...state }, axis = data.axes[layerNow().query];
    Object.assign(state, changes);
    state.section = clamp(state.section, 0, data.sections.length - 1);
    if (state.section !== before.section) state.layer = sectionNow().id === "attention" ? sectionNow().layers.length - 1 : 0;
    state.layer = clamp(state.layer, 0, sectionNow().layers.length - 1);
    if (state.head >= layerNow().heads.length) state.head = MEAN;
    if (data.axes[layerNow().query] !== axis) Object.assign(state, { query: null, held: false, cell: null });
    render();
  }

  let turn = 0;
  async function render() {
    const mine = ++turn, section = sectionNow(), layer = layerNow();
    const whole = await numbers(layer);
    if (mine !== turn) return; // something newer was asked for meanwhile
    const query = data.axes[layer.query], key = data.axes[layer.key];
    current = { section, layer, whole, query, key, over: overPicture() };
    board.showSections(data.sections, state.section);
    showTools();
    showHeads();
    showFigures();
    layOut();
    showRow();
    document.body.dataset.ready = "yes";
  }

  const showSoon = soon(() => { if (current) showRow(); });

  function showRow() {
    const { section, layer, whole, key } = current, query = queryNow();
    const row = rowOf(layer, whole, state.head, query), cells = row.subarray(key.names.length);
    let high = 0, low = 0;
    for (const value of cells) {
      if (value > high) high = value;
      if (value < low) low = value;
    }
    Object.assign(current, { row, cells, high: high || (low ? -low : 1), low });
    if (section.id === "position") Object.assign(current, { high: 1, low: Math.min(low, -1e-9) });
    draw();
    showQueries();
    showScale();
    showCaption();
    const head = state.head === MEAN ? "mean" : layer.heads[state.head];
    $("stage").dataset.shown = [section.id, layer.name, head, queryName(query)].join(" ");
  }

  function queryName(query) {
    const axis = current.query;
    if (query === ALL) return "all";
    if (query < axis.names.length) return axis.names[query];
    const cell = query - axis.names.length;
    return `${Math.floor(cell / axis.columns)},${cell % axis.columns}`;
  }

  // --- controls ----------------------------------------------------------------------------------------------------

  function showTools() {
    const { section, layer, over } = current;
    const title = { rollout: "Of", classes: "By", position: "Of" }[section.id] || "Layer";
    board.showLists(title, section.layers.map((one) => one.label), layer, state);
    $("view").hidden = section.id !== "position";
    choice("view", [["one", "one position"], ["every", "map of maps"]], state.every ? "every" : "one");
    $("opacity-field").hidden = $("smooth").hidden = !over;
    choice("smooth", [["cells", "cells"], ["smooth", "smooth"]], state.smooth ? "smooth" : "cells");
    $("windows").hidden = layer.windows === null;
    choice("windows", [["on", "windows"], ["off", "none"]], state.windows ? "on" : "off");
    $("board").classList.toggle("over", over);
    $("about").textContent = about();
    $("layer-name").textContent = layer.name;
  }

  // Queries that have no place in the picture, and all cells at once.
  function showQueries() {
    const { section, query } = current, items = query.names.map((name, i) => [String(i), name]);
    if (query.grid && ["attention", "mixing", "rollout"].includes(section.id)) items.push([String(ALL), "all cells"]);
    $("query").hidden = items.length < 2 && !(items.length && query.grid);
    choice("query", items, String(queryNow()));
    if (!$("query").querySelector("[tabindex='0']") && items.length) $("query").firstChild.tabIndex = 0;
  }

  function about() {
    const { section, layer } = current, { fusion, residual, discard } = data.rollout;
    const left = discard ? ` The smallest ${number(100 * discard, 0)} % of each row's weights are left out.` : "";
    switch (section.id) {
      case "attention": return layer.windows === null
        ? "Where one position looks. Point at a patch to see its look; extra tokens have buttons of their own."
        : "Where one cell looks inside its window. A window that was shifted across the border holds cells from both "
          + "ends of the picture; its dashed parts do not see each other.";
      case "mixing": return "How much a patch's output moves with each patch's input, averaged over channels: the "
        + "derivative of the mixing MLP. It may be negative.";
      case "rollout": return `All layers of attention multiplied (Abnar & Zuidema 2020): ${fusion} of the heads, a share of `
        + `${residual} for each position's own stream.${left} ${layer.name === "rollout"
          ? "Shown is what the answer is read from." : "Shown is what one position is made of: its reach."}`;
      case "classes": return {
        "gradient-rollout": "What a class hangs on through all layers: weights counted by the gradient of its logit "
          + "(Chefer, Gur & Wolf 2021).",
        "grad-cam": "Where the last features on a grid speak for a class (Grad-CAM, Selvaraju et al. 2017).",
        gradient: "How much the logit of a class would change with the pixels of a cell (Simonyan et al. 2014).",
      }[layer.name] || "What a class hangs on.";
      case "position": return "How alike the learned vectors of two positions are (Dosovitskiy et al. 2021, figure 7).";
      default: return "What each head adds to its scores for each distance between query and key (Liu et al. 2021, "
        + "equation 4): the middle is a cell itself.";
    }
  }

  function showAnswer() {
    $("run").textContent = data.run;
    $("name").textContent = `${data.picture.name || "pixels"} · read as ${WIDTH} × ${HEIGHT} pixels`;
    const { top = [], value, explained = [] } = data.answer;
    const classes = data.sections.findIndex((section) => section.id === "classes");
    if (value !== undefined) $("answer").append(make("div", {}, make("span", { textContent: String(value) })));
    for (const { name, probability } of top) {
      const place = explained.indexOf(name), bar = make("i");
      bar.style.width = `${clamp(100 * probability, 0, 100)}%`;
      const inside = [make("span", { textContent: name }), make("span", {}, bar), make("b", { textContent: weight(probability) })];
      const line = make(place >= 0 && classes >= 0 ? "button" : "div", {}, ...inside);
      if (line.tagName === "BUTTON") {
        Object.assign(line, { type: "button", title: `What “${name}” hangs on` });
        line.addEventListener("click", () => { change({ section: classes }); change({ query: place, held: false }); });
      }
      $("answer").append(line);
    }
    $("sentence").textContent = data.faithfulness?.sentence || "";
    $("reduced").textContent = data.reduced;
    $("reduced").hidden = !data.reduced;
  }

  function showScale() {
    const { low, high } = current;
    $("low").textContent = low < 0 ? weight(low) : "0";
    $("middle").textContent = low < 0 ? "0" : weight(high / 2);
    $("high").textContent = weight(high);
    $("scale").classList.toggle("signed", low < 0);
  }

  function showCaption() {
    const { section, layer, key, row, cells } = current, query = queryNow(), signed = current.low < 0;
    const place = (cell) => `row ${Math.floor(cell / key.columns) + 1}, column ${(cell % key.columns) + 1}`;
    const who = section.id === "classes" || !current.query.grid ? `“${current.query.names[query]}”`
      : query === ALL ? "The mean cell" : query < current.query.names.length ? current.query.names[query]
        : `The cell in row ${Math.floor((query - current.query.names.length) / current.query.columns) + 1}, column `
          + `${((query - current.query.names.length) % current.query.columns) + 1}`;
    let text;
    if (section.id === "bias") {
      const middle = (key.rows - 1) / 2, cell = state.cell ?? middle * key.columns + middle;
      const [down, along] = [Math.floor(cell / key.columns) - middle, (cell % key.columns) - middle];
      text = `A query ${Math.abs(down)} ${down < 0 ? "above" : "below"} and ${Math.abs(along)} `
        + `${along < 0 ? "left" : "right"} of its key: ${weight(cells[cell])}`;
    } else if (state.cell !== null && section.id === "classes") {
      text = `${who}, ${place(state.cell)}: ${weight(cells[state.cell])}`;
    } else {
      const best = cells.reduce((a, value, i) => (value > cells[a] ? i : a), 0);
      const verb = { classes: "hangs most on", rollout: "draws most on", position: "is most like", mixing: "moves most with" };
      text = `${who} ${verb[section.id] || "looked most at"} ${place(best)} (${weight(cells[best])}).`;
    }
    $("caption").textContent = text;
    const apart = section.id === "attention" || section.id === "rollout"
      ? key.names.map((name, i) => `${name} ${weight(row[i])}`) : [];
    const total = cells.reduce((a, value) => a + value, 0);
    const lost = 1 - row.reduce((a, value) => a + value, 0);
    if (layer.windows !== null && lost > 0.005) apart.push(`padding ${weight(lost)}`);
    $("apart").textContent = apart.length && !signed ? `In the picture ${weight(total)}; apart from it: ${apart.join(", ")}.` : "";
    [...$("answer").querySelectorAll("button")].forEach((button) => {
      const chosen = section.id === "classes" && button.firstChild.textContent === current.query.names[query];
      button.setAttribute("aria-pressed", chosen);
    });
  }

  // --- heads and figures -------------------------------------------------------------------------------------------

  function showHeads() {
    const { section } = current, bias = section.id === "bias";
    board.showHeads(section.layers, state, {
      key: section.id,
      colours: bias ? colours.heat : colours.over,
      hint: "A row for each layer, a column for each head: "
        + (bias ? "its table." : data.reads.length ? `what ${data.reads[0]} looks at.` : "what all cells look at."),
      name: (layer) => `Layer ${layer.label}`,
      dress(button, layer) {
        const key = data.axes[layer.key];
        button.firstChild.style.aspectRatio = `${key.columns * key.wide} / ${key.rows * key.tall}`;
      },
    });
  }

  function showFigures() {
    board.showFigures(current.layer, {
      title: `layer ${current.layer.label}`,
      unit: "pixels",
      hint: (apart) => (apart ? "Distance is how far away in the picture a head's cells look, on average." : ""),
      head: state.head,
      chosen: (head) => change({ head }),
    });
  }

  // --- the picture and what lies over it ---------------------------------------------------------------------------

  const context = $("canvas").getContext("2d");

  function readColours() {
    const heat = named("--heat").split(",");
    colours = {
      over: ramp(named("--over").split(",")), under: ramp(["#000004", named("--under")]), heat: ramp(heat),
      cold: ramp([heat[0], named("--back")]), look: named("--look"), back: named("--back"), faint: named("--faint"),
      soft: named("--soft"), ink: named("--ink"),
    };
  }

  function layOut() {
    const { key, over, section } = current, room = $("stage").parentElement.clientWidth;
    const every = section.id === "position" && state.every;
    const [high, wide] = over ? [HEIGHT, WIDTH] : [key.rows * key.tall, key.columns * key.wide];
    const scale = Math.min(room / wide, Math.min(620, window.innerHeight * 0.74) / high);
    geometry = { scale, wide: wide * scale, high: high * scale, every };
    sizeCanvas(context, geometry.wide, geometry.high);
    const head = current.layer.heads.length ? `, ${board.headName(current.layer, state.head)}` : "";
    $("stage").setAttribute("aria-label", `${section.label}, ${current.layer.label}${head}. Arrow keys go from cell to cell.`);
  }

  function draw() {
    const { key, cells, high, low, over, layer } = current, { scale, wide, every } = geometry;
    context.clearRect(0, 0, wide, geometry.high);
    if (every) return drawEvery();
    const size = [key.columns * key.wide * scale, key.rows * key.tall * scale];
    if (over) {
      context.imageSmoothingEnabled = picture.naturalWidth * 4 > wide; // the pixels of a small picture stay pixels
      context.drawImage(picture, 0, 0, wide, geometry.high);
      context.globalAlpha = state.opacity;
    }
    context.imageSmoothingEnabled = over && state.smooth;
    context.imageSmoothingQuality = "high";
    const pair = over ? [colours.over, colours.under] : [colours.heat, colours.cold];
    context.drawImage(painted(cells, key.rows, key.columns, high, low, 1, pair), 0, 0, ...size);
    context.globalAlpha = 1;
    const query = queryNow();
    if (layer.windows !== null && state.windows) drawWindows(query);
    if (over && current.query.grid && query >= current.query.names.length) outline(current.query, query, "#ffffff", 2);
    if (state.cell !== null && (current.section.id === "classes" || !over)) {
      outline(key, state.cell + key.names.length, over ? "#ffffff" : colours.back, 2);
    }
  }

  function outline(axis, position, colour, width) {
    const cell = position - axis.names.length, { scale } = geometry, x = (cell % axis.columns) * axis.wide * scale;
    const box = [x, Math.floor(cell / axis.columns) * axis.tall * scale, axis.wide * scale, axis.tall * scale];
    context.lineWidth = width + 2;
    context.strokeStyle = "rgb(0 0 0 / .55)";
    context.strokeRect(...box);
    context.lineWidth = width;
    context.strokeStyle = colour;
    context.strokeRect(...box);
  }

  // A window's parts that lie together on the grid: [first row, last row, first column, last column] each.
  function regionsOf(cells, axis) {
    const runs = (values) => {
      const known = [...new Set(values)].sort((a, b) => a - b), found = [];
      for (const value of known) {
        if (found.length && value === found.at(-1)[1] + 1) found.at(-1)[1] = value;
        else found.push([value, value]);
      }
      return found;
    };
    const real = cells.filter((cell) => cell >= 0);
    const rows = runs(real.map((cell) => Math.floor(cell / axis.columns))), columns = runs(real.map((cell) => cell % axis.columns));
    return rows.flatMap(([a, b]) => columns.map(([c, d]) => [a, b, c, d]));
  }

  function drawWindows(query) {
    const { layer, query: axis } = current, { scale } = geometry, windows = data.windows[layer.windows];
    const own = query >= 0 ? windowNumbers(layer)[query] : null;
    const box = ([a, b, c, d]) => [
      c * axis.wide * scale, a * axis.tall * scale, (d - c + 1) * axis.wide * scale, (b - a + 1) * axis.tall * scale,
    ];
    context.lineWidth = 1;
    context.strokeStyle = "rgb(255 255 255 / .45)";
    for (const cells of windows) for (const region of regionsOf(cells, axis)) context.strokeRect(...box(region));
    if (own === null || own === undefined) return;
    const [row, column] = [Math.floor(query / axis.columns), query % axis.columns];
    for (const region of regionsOf(windows[own], axis)) {
      const [a, b, c, d] = region, inside = a <= row && row <= b && c <= column && column <= d;
      context.lineWidth = 2;
      context.strokeStyle = "#ffffff";
      context.setLineDash(inside ? [] : [5, 4]);
      context.strokeRect(...box(region));
      if (!inside) hatch(box(region));
    }
    context.setLineDash([]);
  }

  function hatch([x, y, wide, high]) {
    context.save();
    context.beginPath();
    context.rect(x, y, wide, high);
    context.clip();
    context.setLineDash([]);
    context.lineWidth = 1;
    context.strokeStyle = "rgb(255 255 255 / .5)";
    context.beginPath();
    for (let at = -high; at < wide; at += 7) {
      context.moveTo(x + at, y + high);
      context.lineTo(x + at + high, y);
    }
    context.stroke();
    context.restore();
  }

  // The map of maps: in the place of each cell a small map of how alike it is to every cell.
  function drawEvery() {
    const { layer, whole, key } = current, { wide, high } = geometry, table = scaleOf(layer), skip = key.names.length;
    const length = lengthOf(key), cells = new Float32Array((key.rows * (key.rows + 1)) * (key.columns * (key.columns + 1)));
    const across = key.columns * (key.columns + 1);
    cells.fill(NaN);
    for (let q = 0; q < key.rows * key.columns; q++) {
      const top = Math.floor(q / key.columns) * (key.rows + 1), left = (q % key.columns) * (key.columns + 1);
      const start = layer.queries.indexOf(q + skip) * length + skip;
      for (let k = 0; k < key.rows * key.columns; k++) {
        cells[(top + Math.floor(k / key.columns)) * across + left + (k % key.columns)] = table[whole[start + k]];
      }
    }
    const image = painted(cells, key.rows * (key.rows + 1), across, 1, -1, 1, [colours.heat, colours.cold]);
    const inside = image.getContext("2d");
    for (let r = 1; r <= key.rows; r++) inside.clearRect(0, r * (key.rows + 1) - 1, across, 1);
    for (let c = 1; c <= key.columns; c++) inside.clearRect(c * (key.columns + 1) - 1, 0, 1, image.height);
    context.imageSmoothingEnabled = image.width > wide;
    context.drawImage(image, 0, 0, wide, high);
    outline(key, queryNow(), colours.back, 2);
  }

  // --- faithfulness ------------------------------------------------------------------------------------------------

  function showFaithfulness() {
    const found = data.faithfulness;
    $("faithfulness-part").hidden = !found;
    if (!found) return;
    const fills = Object.keys(found.fills), fill = found.fills[fills[state.fill]];
    choice("fill", fills.map((name, i) => [String(i), name]), String(state.fill));
    const known = { [found.by]: colours.look, random: colours.faint, centre: colours.soft, gradient: colours.back };
    const others = ["#7a6ad8", "#3a9d6e", "#b8863b"], names = Object.keys(fill.curves);
    const colour = Object.fromEntries(names.map((name) => [name, known[name] || others.shift() || colours.soft]));
    const every = names.flatMap((name) => [...fill.curves[name].deletion, ...fill.curves[name].insertion]);
    const low = Math.min(...every, 0), high = Math.max(...every, low + 1e-9);
    const chart = (which) => {
      const svg = svgOf("svg", { viewBox: "0 0 100 70", role: "img", "aria-label": `${which} curves` });
      svg.append(svgOf("path", { class: "axis", d: "M0 0 V70 H100" }));
      for (const name of names.toReversed()) {
        const points = fill.curves[name][which].map((value, i) => `${100 * fill.shares[i]} ${70 - (70 * (value - low)) / (high - low)}`);
        const dashed = name === "random" ? { "stroke-dasharray": "4 3" } : {};
        const line = svgOf("path", { d: `M${points.join("L")}`, stroke: colour[name], ...dashed });
        if (name === found.by) line.style.strokeWidth = 2.4;
        svg.append(line);
      }
      return make("figure", {}, svg, make("figcaption", { textContent: `${which}, ${number(low)} to ${number(high)}` }));
    };
    $("curves").replaceChildren(chart("deletion"), chart("insertion"));
    const area = (name) => (name === found.by ? fill.area : name === "random" ? fill.random : fill.baselines[name]);
    const rows = names.map((name) => {
      const mark = make("i");
      mark.style.borderColor = colour[name];
      return make("tr", {}, make("td", {}, mark, name), make("td", { textContent: number(area(name)) }));
    });
    const top = make("tr", {}, make("th", { textContent: "order" }), make("th", { textContent: "area" }));
    $("areas").replaceChildren(make("thead", {}, top), make("tbody", {}, ...rows));
    const [down, along] = found.grid;
    $("faithfulness-hint").textContent = `${down} × ${along} patches are taken away, and put back, in each order (Petsiuk et al. `
      + `2018). Area is insertion less deletion; ${number(100 * fill.chance, 0)} % of random orders reach that of ${found.by}.`;
  }

  function svgOf(tag, attributes) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  }

  // --- hands: mouse and keyboard -----------------------------------------------------------------------------------

  function cellUnder(event, axis) {
    const box = $("canvas").getBoundingClientRect(), { scale } = geometry;
    const row = Math.floor((event.clientY - box.top) / scale / axis.tall);
    const column = Math.floor((event.clientX - box.left) / scale / axis.wide);
    if (row < 0 || column < 0 || row >= axis.rows || column >= axis.columns) return null;
    return row * axis.columns + column;
  }

  function point(event) {
    if (!current) return;
    const { query, key, section } = current;
    if (section.id !== "classes" && query.grid) {
      const cell = cellUnder(event, query);
      if (cell !== null && layerNow().queries.includes(cell + query.names.length)) state.query = cell + query.names.length;
    } else state.cell = cellUnder(event, key);
    showSoon();
  }

  $("canvas").addEventListener("pointermove", (event) => { if (!state.held) point(event); });
  $("canvas").addEventListener("pointerleave", () => {
    state.cell = null;
    if (!state.held && current?.query.grid) state.query = null;
    showSoon();
  });
  $("canvas").addEventListener("click", (event) => {
    const before = queryNow(), was = state.held;
    point(event);
    state.held = !(was && before === queryNow()) && current.query.grid;
    showSoon();
  });

  $("stage").addEventListener("keydown", (event) => {
    if (!current || event.ctrlKey || event.metaKey || event.altKey) return;
    const [x, y] = arrows[event.key] || [0, 0], { query, key, section, layer } = current;
    if (event.key === "Escape") Object.assign(state, { query: null, held: false, cell: null });
    else if (event.key === "Enter" || event.key === " ") state.held = !state.held && query.grid;
    else if (event.shiftKey && (x || y)) {
      change(board.stepped(state, [x, y], section.layers, layer.heads.length));
    } else if (x || y) {
      const moving = query.grid && section.id !== "classes" ? query : key, skip = moving.names.length;
      const at = moving === query ? queryNow() - skip : (state.cell ?? -1);
      const first = Math.floor(moving.rows / 2) * moving.columns + Math.floor(moving.columns / 2);
      const row = clamp(Math.floor(at / moving.columns) + y, 0, moving.rows - 1);
      const cell = at < 0 ? first : row * moving.columns + clamp((at % moving.columns) + x, 0, moving.columns - 1);
      if (moving === query) Object.assign(state, { query: cell + skip, held: true });
      else state.cell = cell;
    } else return;
    event.preventDefault();
    showSoon();
  });

  board.onSection((section) => change({ section }));
  board.onHead(() => sectionNow().layers, state, change);
  onChoice("query", (value) => { Object.assign(state, { query: +value, held: current.query.grid }); showSoon(); });
  onChoice("view", (value) => change({ every: value === "every" }));
  onChoice("smooth", (value) => change({ smooth: value === "smooth" }));
  onChoice("windows", (value) => change({ windows: value === "on" }));
  onChoice("fill", (value) => { state.fill = +value; showFaithfulness(); });
  $("opacity").addEventListener("input", (event) => { state.opacity = event.target.value / 100; showSoon(); });
  onResize(() => { if (current) { layOut(); showRow(); } });

  showAnswer();
  state.layer = sectionNow().id === "attention" ? sectionNow().layers.length - 1 : 0;
  picture.src = `data:image/png;base64,${data.picture.png}`;
  picture.decode().then(() => themes(() => {
    readColours();
    delete $("heads").dataset.key; // thumbnails hold their colours
    showFaithfulness();
    render();
  }));
})();
