// The page of a look. One state, one render: every control changes the state and asks for a frame.
//
//   numbers() unpacks a layer's weights -> matrixOf() merges and shifts a head -> lines or grid, texts, lists
//
// User text only ever reaches the document as textContent.
(() => {
  const {
    $, make, number, weight, clamp, MEAN, arrows, soon, numbers, scaleOf, named, ramp, painted, sizeCanvas, options, choice,
    onChoice, themes, onResize,
  } = parts;
  const data = JSON.parse($("data").textContent);
  const LINES_AT_MOST = 64; // longer texts open as a grid
  const ROW = 27, SMALL_ROW = 20;

  const state = {
    example: 0, section: 0, layer: 0, head: MEAN, words: true, predicted: false, view: null,
    focus: null, // {side: "query" | "key", index, other}: a word, and in the grid the cell's other word
    held: false,
  };
  let current = null; // what is on screen: {example, section, layer, matrix, ...}

  const quoted = (unit) => `“${unit.label}”`;

  // --- weights -----------------------------------------------------------------------------------------------------

  // What the rows or columns of a drawing are: words or pieces, each with its positions on the axis.
  function unitsOf(axis, words, predicted, marks) {
    let units = words && axis.words.length
      ? axis.words.map(({ text, positions, mark, place }, unit) => ({ label: text, positions, mark, place, unit }))
      : axis.pieces.map((piece, i) => ({ label: piece, positions: [i], mark: marks.has(i), place: null, unit: i }));
    if (predicted) { // the row that predicts a word is the one before that which takes it in
      const last = axis.pieces.length - 1;
      units = units.map((unit) => ({ ...unit, positions: unit.positions.map((p) => p - 1).filter((p) => p >= 0) }));
      units = units.filter((unit) => unit.positions.length);
      units.push({ label: "</s>", positions: [last], mark: true, place: null, unit: -1 });
    }
    return units;
  }

  // One head of a layer (or the mean of its heads) between units: keys summed, rows averaged.
  function matrixOf(example, layer, whole, head, words, predicted) {
    const queryAxis = example.axes[layer.query], keyAxis = example.axes[layer.key];
    const width = keyAxis.pieces.length, height = layer.queries.length, size = height * width;
    const table = scaleOf(layer), plane = new Float32Array(size);
    const heads = layer.heads.length || 1;
    const chosen = head === MEAN || !layer.heads.length ? [...Array(heads).keys()] : [head];
    for (const h of chosen) {
      const start = h * size;
      for (let i = 0; i < size; i++) plane[i] += table[whole[start + i]];
    }
    if (chosen.length > 1) for (let i = 0; i < size; i++) plane[i] /= chosen.length;

    const columns = unitsOf(keyAxis, words, false, new Set(keyAxis.marks));
    const rowOf = new Map(layer.queries.map((position, row) => [position, row]));
    const rows = unitsOf(queryAxis, words, predicted && layer.decoder, new Set(queryAxis.marks))
      .map((unit) => ({ ...unit, rows: unit.positions.filter((p) => rowOf.has(p)).map((p) => rowOf.get(p)) }))
      .filter((unit) => unit.rows.length);
    const columnOf = new Int32Array(width).fill(-1);
    columns.forEach((unit, column) => unit.positions.forEach((p) => { columnOf[p] = column; }));

    const values = new Float32Array(rows.length * columns.length);
    rows.forEach((unit, row) => {
      const start = row * columns.length;
      let filled = 0;
      for (const r of unit.rows) {
        let sum = 0;
        for (let k = 0; k < width; k++) {
          const value = plane[r * width + k];
          sum += value;
          if (columnOf[k] >= 0) values[start + columnOf[k]] += value;
        }
        if (sum !== 0) filled++;
      }
      if (filled > 1) for (let c = 0; c < columns.length; c++) values[start + c] /= filled;
    });
    let high = 0, low = 0;
    for (let i = 0; i < values.length; i++) {
      if (values[i] > high) high = values[i];
      if (values[i] < low) low = values[i];
    }
    return { rows, columns, values, high: high || 1, low, width: columns.length, height: rows.length };
  }

  // --- colours -----------------------------------------------------------------------------------------------------

  let colours;
  function readColours() {
    const heat = named("--heat").split(",");
    colours = {
      heat: ramp(heat), cold: ramp([heat[0], named("--back")]), look: named("--look"), back: named("--back"),
      ink: named("--ink"), soft: named("--soft"), faint: named("--faint"), paper: named("--paper"), link: named("--link"),
      font: named("--sans"),
    };
  }

  // --- what is chosen ----------------------------------------------------------------------------------------------

  const exampleNow = () => data.examples[state.example];
  const sectionNow = () => exampleNow().sections[state.section];
  const layerNow = () => sectionNow().layers[state.layer];

  function change(changes) {
    const before = { ...state };
    Object.assign(state, changes);
    const sections = exampleNow().sections;
    if (state.example !== before.example) { // stay with the same kind of map, where the new text has one
      const id = data.examples[before.example].sections[before.section].id;
      state.section = Math.max(0, sections.findIndex((section) => section.id === id));
    }
    state.section = clamp(state.section, 0, sections.length - 1);
    state.layer = clamp(state.layer, 0, sectionNow().layers.length - 1);
    if (state.head >= layerNow().heads.length) state.head = MEAN;
    const moved = ["example", "section", "words", "predicted"].some((key) => state[key] !== before[key]);
    if (moved) Object.assign(state, { focus: null, held: false });
    render();
  }

  const focusSoon = soon(() => { if (current) showFocus(); });
  function focus(next, held = state.held) {
    const same = next === state.focus || (next && state.focus && next.side === state.focus.side
      && next.index === state.focus.index && next.other === state.focus.other);
    if (same && held === state.held) return;
    state.focus = next;
    state.held = held && next !== null;
    focusSoon();
  }

  // --- render ------------------------------------------------------------------------------------------------------

  let turn = 0;
  async function render() {
    const mine = ++turn, example = exampleNow(), section = sectionNow(), layer = layerNow();
    const whole = await numbers(layer);
    if (mine !== turn) return; // something newer was asked for meanwhile
    const aligned = section.id === "alignment", grid = section.id === "position";
    const words = aligned || state.words, predicted = aligned ? section.reading === "unshifted" : state.predicted;
    const key = [state.example, state.section, layer.weights, state.head, words, predicted].join();
    const same = current?.key === key;
    const matrix = same ? current.matrix : matrixOf(example, layer, whole, state.head, words && !grid, predicted);
    const fits = Math.max(matrix.width, matrix.height) <= LINES_AT_MOST;
    const view = grid ? "grid" : state.view || (fits ? "lines" : "grid");
    const changed = !current || current.example !== example || current.words !== words;
    current = {
      key, example, section, layer, matrix, words, predicted: predicted && layer.decoder, view, lines: !grid, aligned,
    };
    if (state.focus) {
      const count = state.focus.side === "query" ? matrix.height : matrix.width;
      if (state.focus.index >= count) Object.assign(state, { focus: null, held: false });
    }
    if (changed) showTexts();
    board.showSections(example.sections, state.section);
    showTools();
    showHeads();
    showFigures();
    layOut();
    showFocus();
    const head = state.head === MEAN ? "mean" : layer.heads[state.head];
    $("stage").dataset.shown = [section.id, layer.name, head, view].join(" ");
    document.body.dataset.ready = "yes";
  }

  // --- texts -------------------------------------------------------------------------------------------------------

  const spansOf = new Map(); // axis -> the spans of its units

  function showTexts() {
    const { example, words } = current, part = $("texts");
    part.replaceChildren();
    spansOf.clear();
    const order = { source: 0, "": 1, target: 2, answer: 3 };
    const layers = example.sections.filter((section) => !["position", "first", "pool"].includes(section.id)).flatMap((section) => section.layers);
    const axes = [...new Set(layers.flatMap((layer) => [layer.key, layer.query]))]
      .filter((id) => example.axes[id].text)
      .sort((a, b) => order[example.axes[a].role] - order[example.axes[b].role]);
    for (const id of axes) {
      const axis = example.axes[id], line = make("p", { lang: "" }), spans = [], marks = new Set(axis.marks);
      const units = unitsOf(axis, words, false, marks);
      const wordOf = [];
      axis.words.forEach((word, w) => word.positions.forEach((p) => { wordOf[p] = w; }));
      units.forEach((unit, i) => {
        const apart = i > 0 && (words || wordOf[unit.positions[0]] !== wordOf[units[i - 1].positions[0]]);
        if (apart) line.append(" ");
        const span = make("span", { className: unit.mark ? "unit mark" : "unit", textContent: unit.label });
        span.dataset.axis = id;
        span.dataset.unit = i;
        const scores = unit.positions.map((p) => axis.scores[p - 1]).filter((score) => typeof score === "number");
        if (scores.length) {
          const chance = Math.exp(scores.reduce((a, b) => a + b, 0));
          span.title = `probability ${number(chance)}`;
          if (chance < 0.5) span.classList.add("unsure");
        }
        spans.push(span);
        line.append(span);
      });
      spansOf.set(id, spans);
      const name = make("span", { textContent: axis.role || "text" });
      part.append(make("div", { className: axis.pieces.length > 60 ? "text long" : "text" }, name, line));
      if (axis.norms.length) part.append(normsOf(axis));
    }
    const about = example.remark ? [example.remark] : [];
    if (example.score !== null) {
      about.push(make("span", {}, "score ", make("b", { textContent: number(example.score, 3) })));
    }
    if (part.querySelector(".unsure")) about.push("dotted: the model gave the word less than an even chance");
    if (example.faithfulness) about.push(example.faithfulness);
    if (about.length) {
      const line = make("p", { className: "about" });
      about.forEach((item, i) => line.append(...(i ? ["  ·  ", item] : [item])));
      part.append(line);
    }
    part.hidden = !axes.length;
    $("run").textContent = example.run;
  }

  // A bar for each step: how long the state is, on the scale of the longest.
  function normsOf(axis) {
    const longest = Math.max(...axis.norms.filter((norm) => norm !== null), 1e-12);
    const bars = axis.norms.map((norm, i) => {
      const bar = make("i", { title: `${axis.pieces[i]}: length of the state ${norm === null ? "?" : number(norm)}` });
      bar.style.height = `${Math.max(1, 26 * (norm || 0) / longest)}px`;
      return bar;
    });
    const label = `Length of the ${axis.role} state at each step, at most ${number(longest)}`;
    const row = make("div", { className: "norms", title: label }, ...bars);
    row.setAttribute("role", "img");
    row.setAttribute("aria-label", label);
    return make("div", { className: "text" }, make("span", { textContent: "states" }), row);
  }

  // --- controls ----------------------------------------------------------------------------------------------------

  function showTools() {
    const { section, layer, aligned } = current;
    const layers = section.layers.map((one, i) => one.label.replace(/^layer /, "") || String(i + 1));
    board.showLists(["rollout", "position", "relevance"].includes(section.id) ? "Of" : "Layer", layers, layer, state);
    const decoder = layer.decoder && !aligned;
    $("step").hidden = !decoder;
    if (decoder) {
      choice("step", [
        ["input", "as input", true, "A word's row is the step where the decoder takes it in (the shifted reading)"],
        ["predicted", "as prediction", true, "A word's row is the step which predicts it"],
      ], state.predicted ? "predicted" : "input");
    }
    const merged = [layer.query, layer.key].some((id) => current.example.axes[id].words.length);
    $("unit").hidden = aligned || !merged || section.id === "position";
    choice("unit", [["words", "words"], ["pieces", "pieces"]], state.words ? "words" : "pieces");
    $("view").hidden = !current.lines;
    choice("view", [["lines", "lines"], ["grid", "grid"]], current.view);
    options($("example"), data.examples.map((example, i) => `${i + 1}. ${example.title.slice(0, 90)}`), state.example);
    $("previous").disabled = state.example === 0;
    $("next").disabled = state.example === data.examples.length - 1;
    $("examples").hidden = data.examples.length < 2;
    $("about").textContent = about();
    $("layer-name").textContent = aligned ? section.from : layer.name;
  }

  function about() {
    const { section, layer, predicted } = current;
    const step = predicted
      ? "A word's row is the step that predicts it: before the decoder has seen the word itself."
      : "A word's row is the step that takes it in; at that step the decoder predicts the next word.";
    const gold = section.id === "alignment" && (section.sure.length || section.possible.length);
    switch (section.id) {
      case "encoder": return "Where each word looks within its own text.";
      case "decoder": return `Where the decoder looks in what it has written so far. ${layer.decoder ? step : ""}`;
      case "cross": return `Where the decoder looks in the source. ${layer.decoder ? step : ""}`;
      case "alignment": return [
        "Which source word each target word is linked to: the one with most weight, marks left out,",
        `at the step that ${predicted ? "predicts the target word" : "takes the target word in"}.`,
        gold ? "Boxes are the gold alignment: heavy for sure links, light for possible ones." : "",
      ].join(" ");
      case "rollout": return layer.kind === "cross"
        ? "The last cross-attention layer, followed back through the encoder's rollout to the words that came in."
        : "All layers multiplied: what each position's output draws from each word that came in. Each layer's mean is "
          + "mixed half and half with the identity, for the residual connection (Abnar & Zuidema 2020).";
      case "gradient": return "What the chance of each word hangs on: how much it would change with each source word "
        + `(the length of its gradient, each row in parts of its sum). ${layer.decoder ? step : ""}`;
      case "pool": return "Which states the one vector is made of, off which the answer is read.";
      case "first": return "What the first token, off which the answer is read, looks at in each layer.";
      case "relevance": return layer.label === "attention"
        ? "What each answer hangs on: gradient times attention, rolled out over all layers (Chefer et al. 2021). "
          + "A row for each answer, in parts of its sum."
        : "What each answer hangs on: how much it would change with each word (the length of its gradient). "
          + "A row for each answer, in parts of its sum.";
      case "position": return "How alike the vectors of any two positions are.";
      default: return "How each position is mixed from the others.";
    }
  }

  // --- heads and figures -------------------------------------------------------------------------------------------

  function showHeads() {
    const { section } = current, columns = board.mostHeads(section.layers) + 1;
    board.showHeads(section.layers, state, {
      key: `${state.example} ${section.id}`,
      colours: colours.heat,
      hint: "A row for each layer, a column for each head. "
        + "The bar is a head's entropy, full where it looks everywhere alike.",
      name: (layer, l) => `layer ${l + 1}`,
      dress(button, layer, head) {
        if (head === MEAN || !layer.entropy.length) return;
        const bar = make("i");
        bar.style.setProperty("--part", `${(100 * layer.entropy[head]) / (layer.maxEntropy || 1)}%`);
        button.append(bar);
      },
    });
    // the column of means is wider, for the gap before it
    if (columns > 5) $("heads").querySelector(".mean").style.width = `calc((100% - 28px) / ${columns} + 8px)`;
  }

  function showFigures() {
    board.showFigures(current.layer, {
      title: `layer ${state.layer + 1}`,
      unit: "positions",
      hint: (apart) => `At most ${number(current.layer.maxEntropy)} nats: every key alike.`
        + (apart ? " Distance is how far away a head looks, on average." : ""),
      head: state.head,
      chosen: (head) => change({ head }),
    });
  }

  // --- the stage: lines and grid -----------------------------------------------------------------------------------

  const context = $("canvas").getContext("2d");
  let geometry = null;

  function textWidth(units, font) {
    context.font = font;
    let width = 0;
    for (const unit of units) width = Math.max(width, context.measureText(unit.label).width);
    return width;
  }

  function layOut() {
    const { matrix, view } = current, stage = $("stage"), wide = stage.parentElement.clientWidth;
    const most = Math.min(640, window.innerHeight * 0.78);
    $("left").hidden = $("right").hidden = view !== "lines";
    const layerName = current.section.layers.length > 1 ? `, layer ${state.layer + 1}` : "";
    const head = current.layer.heads.length ? `, ${board.headName(current.layer, state.head)}` : "";
    const size = `${matrix.height} rows, ${matrix.width} columns`;
    const name = `${current.section.label}${layerName}${head}`;
    stage.setAttribute("aria-label", `${name}: ${size}. Arrow keys go from word to word.`);
    if (view === "lines") layOutLines(matrix, wide, most);
    else layOutGrid(matrix, wide, most);
    $("high").textContent = weight(matrix.high);
    $("low").textContent = matrix.low < 0 ? weight(matrix.low) : "0";
    $("scale").hidden = view === "lines";
  }

  function layOutLines(matrix, wide, most) {
    const small = Math.max(matrix.height, matrix.width) > 26, row = small ? SMALL_ROW : ROW;
    const font = `${small ? 12.5 : 15}px ${colours.font}`, bar = 14;
    const room = wide - bar, side = (units) => clamp(Math.ceil(textWidth(units, font)) + 18, 60, room * 0.36);
    const left = side(matrix.rows), right = side(matrix.columns);
    const between = clamp(room - left - right, 60, 300), start = Math.max(0, (room - left - right - between) / 2);
    const height = Math.max(matrix.height, matrix.width) * row + 8, seen = Math.min(height, most);
    geometry = { row, top: 4, x0: start + left, x1: start + left + between, seen, height };
    $("stage").style.height = `${seen}px`;
    $("inner").style.height = `${height}px`;
    $("inner").style.width = "auto";
    $("inner").classList.toggle("small", small);
    sizeCanvas(context, room, seen);
    column($("left"), matrix.rows, "query", start, left, row);
    column($("right"), matrix.columns, "key", start + left + between, right, row);
    const { rowsTitle, columnsTitle } = titles();
    const [leftEnd, rightStart] = [start + left, start + left + between];
    Object.assign($("from").style, { left: "auto", right: `${wide - leftEnd + 7}px`, maxWidth: `${leftEnd - 7}px` });
    Object.assign($("to").style, { left: `${rightStart + 7}px`, maxWidth: `${wide - rightStart - 7}px` });
    $("from").textContent = rowsTitle;
    $("to").textContent = columnsTitle;
  }

  function titles() {
    const { example, layer, predicted, section } = current;
    const role = (id) => example.axes[id].role || (example.axes[id].text ? "text" : "positions");
    const step = layer.decoder ? (predicted ? ", as predicted" : ", as input") : "";
    if (section.id === "position") return { rowsTitle: "positions", columnsTitle: "positions" };
    if (section.id === "relevance") return { rowsTitle: "answer", columnsTitle: "hangs on" };
    if (section.id === "first") return { rowsTitle: section.label, columnsTitle: "looks at text" };
    return { rowsTitle: `${role(layer.query)}${step}`, columnsTitle: `looks at ${role(layer.key)}` };
  }

  function column(element, units, side, left, width, row) {
    Object.assign(element.style, { left: `${left}px`, width: `${width}px`, top: "4px" });
    element.replaceChildren(...units.map((unit, i) => {
      const span = make("span", { className: unit.mark ? "unit mark" : "unit", textContent: unit.label });
      span.dataset.side = side;
      span.dataset.index = i;
      Object.assign(span.style, { height: `${row - 2}px`, lineHeight: `${row - 2}px`, marginBottom: "2px" });
      return span;
    }));
  }

  function layOutGrid(matrix, wide, most) {
    const font = `12.5px ${colours.font}`;
    const rowRoom = Math.min(textWidth(matrix.rows, font) + 14, wide * 0.3);
    const columnRoom = Math.min(textWidth(matrix.columns, font) * 0.74 + 22, 150); // they stand at 45 degrees
    let cell = (wide - rowRoom - columnRoom * 0.55 - 14) / matrix.width;
    const numbered = current.section.id === "position"; // numbers that do not fit upright are ticks
    const named = cell >= 13 && !(numbered && textWidth(matrix.columns, font) > cell - 3);
    const gamma = numbered ? 1 : named ? 0.7 : 0.5;
    $("middle").textContent = matrix.low < 0 ? "0" : weight(matrix.high * 0.5 ** (1 / gamma));
    $("scale").classList.toggle("signed", matrix.low < 0);
    const [left, top] = named ? [rowRoom, columnRoom] : [44, 24];
    cell = named ? Math.min(cell, 36) : Math.min((wide - left - 20) / matrix.width, 16);
    const x = named ? Math.max(0, (wide - left - cell * matrix.width - columnRoom * 0.4) / 2) + left : left;
    const height = top + cell * matrix.height + 6;
    const upright = named && textWidth(matrix.columns, font) < cell - 3;
    geometry = { cell, x, top, named, upright, seen: Math.min(height, Math.max(most, wide)), height };
    $("stage").style.height = `${geometry.seen}px`;
    $("stage").style.maxHeight = "none";
    $("inner").style.height = `${height}px`;
    sizeCanvas(context, wide - (height > geometry.seen ? 14 : 0), geometry.seen);
    // a power of the weight, so that small ones can be seen; the scale beside the grid says what its middle is
    const { values, height: rows, width: columns, high, low } = matrix;
    geometry.image = painted(values, rows, columns, high, low, gamma, [colours.heat, colours.cold]);
    const { rowsTitle, columnsTitle } = titles();
    Object.assign($("from").style, { left: `${named ? Math.max(0, x - left) : 0}px`, right: "auto", maxWidth: "100%" });
    $("from").textContent = current.section.id === "position" ? "" : `rows: ${rowsTitle} · columns: ${columnsTitle}`;
    $("to").textContent = "";
  }

  function drawLines() {
    const { matrix, section, aligned } = current, { row, top, x0, x1, seen } = geometry, scroll = $("stage").scrollTop;
    context.clearRect(0, 0, $("canvas").width, $("canvas").height);
    const y = (i) => top + i * row + (row - 2) / 2 - scroll;
    const line = (r, c, colour, alpha, width) => {
      const [a, b] = [y(r), y(c)], bend = (x1 - x0) * 0.42;
      context.globalAlpha = alpha;
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.beginPath();
      context.moveTo(x0 + 2, a);
      context.bezierCurveTo(x0 + bend, a, x1 - bend, b, x1 - 2, b);
      context.stroke();
    };
    const at = state.focus, { values, width, height, high } = matrix;
    context.lineCap = "round";
    const first = clamp(Math.floor((scroll - top) / row) - 1, 0, height);
    const last = clamp(Math.ceil((scroll + seen) / row) + 1, 0, height);
    const long = Math.max(height, width) > LINES_AT_MOST;
    const cut = 0.045; // of the largest weight: fainter lines are not seen
    const quiet = at ? 0.1 : aligned ? 0.3 : 0.85;
    for (let r = first; r < last; r++) {
      const weights = values.subarray(r * width, (r + 1) * width);
      // of a long text only the few strongest lines of each word: more would be a wash
      const least = long ? Math.max(cut * high, weights.slice().sort()[width - 5] ?? 0) : cut * high;
      for (let c = 0; c < width; c++) {
        const part = weights[c] / high;
        if (weights[c] > least) line(r, c, colours.look, quiet * part ** 0.8, 0.6 + 2.6 * part);
      }
    }
    if (aligned && !at) for (const [r, c] of linked(section.links)) line(r, c, colours.link, 0.95, 2);
    if (at) {
      const forward = at.side === "query";
      const [count, colour] = forward ? [width, colours.look] : [height, colours.back];
      for (let i = 0; i < count; i++) {
        const [r, c] = forward ? [at.index, i] : [i, at.index], part = values[r * width + c] / high;
        if (part > 0.012) line(r, c, colour, clamp(0.18 + part ** 0.7, 0, 1), 0.8 + 3.4 * part);
      }
    }
    context.globalAlpha = 1;
  }

  // Links of word places as [row, column] of the drawing.
  function linked(links) {
    const rowOf = new Map(current.matrix.rows.map((unit, r) => [unit.place, r]));
    const columnOf = new Map(current.matrix.columns.map((unit, c) => [unit.place, c]));
    return links.filter(([s, t]) => columnOf.has(s) && rowOf.has(t)).map(([s, t]) => [rowOf.get(t), columnOf.get(s)]);
  }

  function drawGrid() {
    const { matrix, section, aligned } = current, { cell, x, top, named, image, seen } = geometry;
    const scroll = $("stage").scrollTop;
    const at = state.focus, wide = cell * matrix.width, high = cell * matrix.height;
    context.clearRect(0, 0, $("canvas").width, $("canvas").height);
    context.save();
    context.beginPath();
    context.rect(0, top, x + wide + 200, seen - top);
    context.clip();
    context.imageSmoothingEnabled = cell < 1;
    context.drawImage(image, x, top - scroll, wide, high);
    if (named && cell >= 18) { // a hair of paper between cells
      context.strokeStyle = colours.paper;
      context.lineWidth = 1;
      context.beginPath();
      for (let r = 1; r < matrix.height; r++) {
        context.moveTo(x, top - scroll + r * cell);
        context.lineTo(x + wide, top - scroll + r * cell);
      }
      for (let c = 1; c < matrix.width; c++) {
        context.moveTo(x + c * cell, top - scroll);
        context.lineTo(x + c * cell, top - scroll + high);
      }
      context.stroke();
    }
    const box = (r, c, colour, width, inset) => {
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.strokeRect(x + c * cell + inset, top - scroll + r * cell + inset, cell - 2 * inset, cell - 2 * inset);
    };
    if (aligned) {
      for (const [r, c] of linked(section.possible)) box(r, c, colours.faint, 1, 2);
      for (const [r, c] of linked(section.sure)) box(r, c, colours.soft, 2, 2);
      for (const [r, c] of linked(section.links)) {
        context.fillStyle = colours.back;
        context.beginPath();
        context.arc(x + (c + 0.5) * cell, top - scroll + (r + 0.5) * cell, clamp(cell * 0.14, 1.5, 4), 0, 7);
        context.fill();
      }
    }
    if (at) {
      const forward = at.side === "query";
      context.strokeStyle = forward ? colours.look : colours.back;
      context.lineWidth = 1.5;
      if (forward) context.strokeRect(x - 1, top - scroll + at.index * cell - 0.5, wide + 2, Math.max(cell, 2) + 1);
      else context.strokeRect(x + at.index * cell - 0.5, top - scroll - 1, Math.max(cell, 2) + 1, high + 2);
      if (at.other !== undefined) {
        const [r, c] = forward ? [at.index, at.other] : [at.other, at.index];
        box(r, c, colours.back, 2, Math.min(0, (cell - 7) / 2));
      }
    }
    context.restore();
    labelGrid(matrix, scroll);
  }

  function labelGrid(matrix, scroll) {
    const { cell, x, top, named, upright, seen } = geometry, at = state.focus;
    const rowNow = at && (at.side === "query" ? at.index : at.other);
    const columnNow = at && (at.side === "key" ? at.index : at.other);
    context.font = `${named ? 12.5 : 11}px ${colours.font}`;
    context.textBaseline = "middle";
    const short = (text, room) => {
      if (context.measureText(text).width <= room) return text;
      let cut = [...text];
      while (cut.length > 1 && context.measureText(`${cut.join("")}…`).width > room) cut = cut.slice(0, -1);
      return `${cut.join("")}…`;
    };
    const step = named ? 1 : Math.max(1, Math.ceil(34 / cell / 10) * 10);
    context.textAlign = "right";
    for (let r = 0; r < matrix.height; r += step) {
      const y = top - scroll + (r + 0.5) * cell;
      if (y < top - 2 || y > seen) continue;
      context.fillStyle = r === rowNow ? colours.ink : matrix.rows[r].mark ? colours.faint : colours.soft;
      context.fillText(named ? short(matrix.rows[r].label, x - 14) : r, x - 8, y);
    }
    for (let c = 0; c < matrix.width; c += step) {
      context.fillStyle = c === columnNow ? colours.ink : matrix.columns[c].mark ? colours.faint : colours.soft;
      context.save();
      context.translate(x + (c + 0.5) * cell, top - 8);
      if (named && !upright) context.rotate(-Math.PI / 4);
      context.textAlign = named && !upright ? "left" : "center";
      context.fillText(named ? short(matrix.columns[c].label, (top - 18) * 1.35) : c, 0, named && !upright ? 0 : -4);
      context.restore();
    }
  }

  function draw() {
    if (!current || !geometry) return;
    if (current.view === "lines") drawLines();
    else drawGrid();
  }

  // --- focus: what a word looks at, and what looks at it -----------------------------------------------------------

  // Rows and columns that a word in focus stands for; a word of a self-attention map is both.
  function ends(at) {
    const { matrix, layer } = current;
    const unit = (at.side === "query" ? matrix.rows : matrix.columns)[at.index].unit;
    const both = layer.query === layer.key && unit >= 0;
    const row = at.side === "query" ? at.index : both ? matrix.rows.findIndex((r) => r.unit === unit) : -1;
    const column = at.side === "key" ? at.index : both ? matrix.columns.findIndex((c) => c.unit === unit) : -1;
    return { row, column };
  }

  function showFocus() {
    draw();
    const { matrix, layer, view } = current, at = state.focus;
    const { rows, columns, values, width, height, high } = matrix;
    const { row, column } = at ? ends(at) : { row: -1, column: -1 };
    const tint = (element, value, colour, now) => {
      element.style.setProperty("--w", value > 0.001 ? Math.min(1, value).toFixed(3) : 0);
      element.style.setProperty("--tint", colour);
      element.classList.toggle("now", now);
    };
    const part = (r, c) => Math.max(0, values[r * width + c] / high);

    if (view === "lines") {
      const forward = at?.side === "query", backward = at?.side === "key";
      [...$("left").children].forEach((element, r) => {
        const colour = backward ? "var(--back)" : "var(--look)";
        tint(element, backward ? part(r, at.index) : 0, colour, forward && at.index === r);
      });
      [...$("right").children].forEach((element, c) => {
        const colour = forward ? "var(--look)" : "var(--back)";
        tint(element, forward ? part(at.index, c) : 0, colour, backward && at.index === c);
      });
    }
    const rowOf = new Map(rows.map((unit, r) => [unit.unit, r]));
    for (const [axis, spans] of spansOf) {
      spans.forEach((element, unit) => {
        let value = 0, colour = "var(--look)", now = false;
        if (at && at.side === "query" && axis === layer.key) value = part(at.index, unit);
        if (at && at.side === "key" && axis === layer.query && rowOf.has(unit)) {
          value = part(rowOf.get(unit), at.index);
          colour = "var(--back)";
        }
        if (at && axis === layer.query && at.side === "query" && rows[at.index].unit === unit) now = true;
        if (at && axis === layer.key && at.side === "key" && at.index === unit) [now, colour] = [true, "var(--back)"];
        tint(element, value, colour, now);
      });
    }

    const list = (element, title, heading, entries) => {
      $(title).textContent = heading;
      const best = entries.filter(([, value]) => value > 0.0005).sort((a, b) => b[1] - a[1]).slice(0, 5);
      element.replaceChildren(...best.map(([unit, value]) => {
        const bar = make("i");
        bar.style.width = `${clamp(100 * value, 0, 100)}%`;
        const name = make("span", { textContent: unit.label }), figure = make("b", { textContent: weight(value) });
        return make("li", {}, name, make("span", {}, bar), figure);
      }));
    };
    const positions = current.section.id === "position";
    const forward = row >= 0 && !positions ? columns.map((unit, c) => [unit, values[row * width + c]]) : [];
    const backward = column >= 0 && !positions ? rows.map((unit, r) => [unit, values[r * width + column]]) : [];
    list($("forward"), "forward-title", forward.length ? `${quoted(rows[row])} looked at` : "", forward);
    list($("backward"), "backward-title", backward.length ? `looked at ${quoted(columns[column])}` : "", backward);
    $("caption").textContent = sentence(at, row, forward, backward);
  }

  function sentence(at, row, forward, backward) {
    const { matrix, layer, section, predicted } = current;
    if (!at && section.id === "position") return "Point at a cell to see how alike two positions are.";
    if (!at) return "Point at a word to see where it looked.";
    if (at.other !== undefined) {
      const [r, c] = at.side === "query" ? [at.index, at.other] : [at.other, at.index];
      const value = weight(matrix.values[r * matrix.width + c]);
      return `${quoted(matrix.rows[r])} → ${quoted(matrix.columns[c])}: ${value}`;
    }
    if (section.id === "position") return `Position ${matrix.rows[at.index]?.label ?? at.index}`;
    const best = (entries) => entries.reduce((a, b) => (b[1] > a[1] ? b : a), [null, 0]);
    if (section.id === "alignment" && at.side === "query") {
      const found = linked(section.links).filter(([r]) => r === row).map(([, c]) => quoted(matrix.columns[c]));
      return `${quoted(matrix.rows[row])} is linked to ${found.join(" and ") || "no word"}.`;
    }
    if (at.side === "query") {
      const [unit, value] = best(forward);
      const word = quoted(matrix.rows[row]);
      if (!unit) return `${word} looked nowhere.`;
      const step = predicted ? `To predict ${word}` : `With ${word} as its input`;
      const who = layer.decoder ? `${step}, the decoder` : word;
      return `${who} looked most at ${quoted(unit)} (${weight(value)}).`;
    }
    const [unit, value] = best(backward);
    const word = quoted(matrix.columns[at.index]);
    return unit ? `${word} was looked at most by ${quoted(unit)} (${weight(value)}).` : `Nothing looked at ${word}.`;
  }

  // --- hands: mouse and keyboard -----------------------------------------------------------------------------------

  function wordUnder(target) {
    const span = target.closest?.(".unit");
    if (!span || !current) return null;
    if (span.dataset.side) return { side: span.dataset.side, index: +span.dataset.index };
    const axis = +span.dataset.axis, unit = +span.dataset.unit, { layer, matrix } = current;
    if (axis === layer.query) {
      const index = matrix.rows.findIndex((row) => row.unit === unit);
      if (index >= 0) return { side: "query", index };
    }
    return axis === layer.key ? { side: "key", index: unit } : null;
  }

  function cellUnder(event) {
    const { cell, x, top } = geometry, box = $("canvas").getBoundingClientRect();
    const c = Math.floor((event.clientX - box.left - x) / cell);
    const inside = event.clientY - box.top;
    const r = Math.floor((inside - top + $("stage").scrollTop) / cell);
    const row = r >= 0 && r < current.matrix.height && inside >= top, column = c >= 0 && c < current.matrix.width;
    if (row && column) return { side: "query", index: r, other: c };
    if (row && c < 0) return { side: "query", index: r };
    if (column && inside < top) return { side: "key", index: c };
    return null;
  }

  const pointed = (event) => (
    event.target.id === "canvas" && current?.view === "grid" ? cellUnder(event) : wordUnder(event.target)
  );
  for (const part of [$("stage"), $("texts")]) {
    part.addEventListener("mousemove", (event) => {
      if (state.held) return;
      const next = pointed(event);
      if (next || part.id === "texts" || current?.view === "grid") focus(next);
    });
    part.addEventListener("mouseleave", () => { if (!state.held) focus(null); });
    part.addEventListener("click", (event) => {
      const next = pointed(event);
      const again = state.held && next?.side === state.focus?.side && next?.index === state.focus?.index;
      focus(again ? null : next, !again);
    });
  }
  $("stage").addEventListener("scroll", () => requestAnimationFrame(draw), { passive: true });

  $("stage").addEventListener("keydown", (event) => {
    if (!current) return;
    const { matrix, view, layer, section } = current, [x, y] = arrows[event.key] || [0, 0];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") focus(null, false);
    else if (event.key === "Enter" || event.key === " ") focus(state.focus, !state.held);
    else if (event.shiftKey && (x || y)) {
      change(board.stepped(state, [x, y], section.layers, layer.heads.length));
    } else if (x || y || event.key === "Home" || event.key === "End") {
      const at = state.focus || { side: "query", index: -1 };
      let { side, index } = at;
      if (view === "lines") {
        if (x) side = x < 0 ? "query" : "key";
        const most = (side === "query" ? matrix.height : matrix.width) - 1;
        index = event.key === "Home" ? 0 : event.key === "End" ? most : clamp(index + y, 0, most);
        focus({ side, index }, state.held);
        reveal(geometry.top + index * geometry.row, geometry.row, 0);
      } else {
        let row = side === "query" ? index : (at.other ?? 0), column = side === "key" ? index : (at.other ?? 0);
        if (event.key === "Home") column = 0;
        else if (event.key === "End") column = matrix.width - 1;
        else {
          row = clamp(row + y, 0, matrix.height - 1);
          column = clamp(column + (state.focus ? x : 0), 0, matrix.width - 1);
        }
        focus({ side: "query", index: Math.max(row, 0), other: column }, state.held);
        reveal(geometry.top + Math.max(row, 0) * geometry.cell, geometry.cell, geometry.top);
      }
    } else return;
    event.preventDefault();
  });

  function reveal(y, size, head) {
    const stage = $("stage");
    if (y - head < stage.scrollTop) stage.scrollTop = y - head;
    else if (y + size > stage.scrollTop + geometry.seen) stage.scrollTop = y + size - geometry.seen;
  }

  board.onSection((section) => change({ section }));
  board.onHead(() => sectionNow().layers, state, change);
  const chosen = {
    step: (value) => ({ predicted: value === "predicted" }),
    unit: (value) => ({ words: value === "words" }),
    view: (value) => ({ view: value }),
  };
  for (const [id, changes] of Object.entries(chosen)) onChoice(id, (value) => change(changes(value)));
  $("example").addEventListener("change", (event) => change({ example: event.target.selectedIndex }));
  $("previous").addEventListener("click", () => change({ example: Math.max(state.example - 1, 0) }));
  $("next").addEventListener("click", () => change({ example: Math.min(state.example + 1, data.examples.length - 1) }));

  // --- light and dark, and size ------------------------------------------------------------------------------------

  onResize(() => { if (current) { layOut(); showFocus(); } });

  $("reduced").textContent = data.reduced;
  $("reduced").hidden = !data.reduced;
  const first = data.examples[0].sections, cross = first.findIndex((section) => ["cross", "gradient", "relevance"].includes(section.id));
  state.section = Math.max(cross, 0);
  state.layer = sectionNow().id === "relevance" ? 0 : sectionNow().layers.length - 1;
  state.predicted = first.find((section) => section.id === "alignment")?.reading === "unshifted"; // as it was read
  themes(() => {
    readColours();
    delete $("heads").dataset.key; // thumbnails hold their colours
    render();
  });
})();
