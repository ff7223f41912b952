"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);
const state = { look: 0, word: -1, layer: 0, plane: 0, timer: 0 };
let image = new Image();

function look() { return data.looks[state.look]; }

function option(text, value) {
  const made = document.createElement("option");
  made.textContent = text;
  made.value = value;
  return made;
}

function open(number) {
  stop();
  Object.assign(state, { look: number, word: -1, layer: look().layers.length - 1, plane: 0 });
  const now = data.looks[number];
  state.layer = now.layers.length - 1;
  at("run").textContent = [now.run, now.name].filter(Boolean).join(" · ");
  at("cut").hidden = now.ended;
  at("sentence").textContent = now.sentence;
  at("reduced").textContent = data.reduced;
  at("caption").replaceChildren(...now.words.flatMap((word, i) => {
    const span = document.createElement("span");
    span.textContent = word.text === "</s>" ? "end" : word.text;
    span.classList.toggle("mark", word.text === "</s>");
    span.setAttribute("role", "option");
    span.addEventListener("mouseenter", () => { stop(); show(i); });
    span.addEventListener("click", () => { stop(); show(i); });
    return [span, " "];
  }));
  at("layer").replaceChildren(...now.layers.map((layer, i) => option(layer.name, i)));
  at("layer").value = state.layer;
  at("layer-field").hidden = now.layers.length < 2;
  heads();
  image = new Image();
  image.onload = draw;
  image.src = "data:image/png;base64," + now.png;
  show(-1);
}

function heads() {
  const layer = look().layers[state.layer];
  at("head").replaceChildren(option("mean", 0), ...layer.heads.map((head, i) => option(head, i + 1)));
  at("head-field").hidden = layer.heads.length === 0;
  state.plane = 0;
}

function show(word) {
  state.word = word;
  const spans = at("caption").querySelectorAll("span");
  spans.forEach((span, i) => {
    span.classList.toggle("now", i === word);
    span.setAttribute("aria-selected", i === word);
  });
  const told = look().words[word];
  const rows = told ? [["chance of the word", (100 * told.chance).toFixed(1) + " %"]] : [];
  if (told && told.beta !== null) rows.push(["β, let through by the gate", told.beta.toFixed(2)]);
  at("about").replaceChildren(...rows.flatMap(([name, value]) => {
    const [dt, dd] = [document.createElement("dt"), document.createElement("dd")];
    dt.textContent = name;
    dd.textContent = value;
    return [dt, dd];
  }));
  falls(told);
  draw();
}

function line(values, low, high, colour, dashes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
  const points = values.map((v, i) => [10 + 220 * i / (values.length - 1), 100 - 90 * (v - low) / (high - low || 1)]);
  made.setAttribute("points", points.map((p) => p.map((v) => v.toFixed(1)).join(",")).join(" "));
  made.setAttribute("fill", "none");
  made.setAttribute("stroke", colour);
  made.setAttribute("stroke-width", "2");
  if (dashes) made.setAttribute("stroke-dasharray", dashes);
  return made;
}

function falls(told) {
  at("falls").hidden = !told || !told.falls;
  if (at("falls").hidden) return;
  const all = [...told.falls.by, ...told.falls.random];
  const [low, high] = [Math.min(...all), Math.max(...all)];
  at("falls").querySelector("svg").replaceChildren(
    line(told.falls.random, low, high, "var(--faint)", "4 3"), line(told.falls.by, low, high, "var(--look)"));
  at("falls-text").textContent = "Log-probability of “" + told.text + "” while the picture is taken away, what it looked at " +
    "first (line) and in random orders (dashes): " + (told.better ? "better than chance." : "no better than chance here.");
}

function draw() {
  const canvas = at("picture"), layer = look().layers[state.layer];
  if (!image.naturalWidth) return;
  const scale = Math.max(1, Math.round(480 / image.naturalWidth));
  const [width, height] = [canvas.width, canvas.height] = [image.naturalWidth * scale, image.naturalHeight * scale];
  const pen = canvas.getContext("2d");
  pen.imageSmoothingEnabled = scale === 1;
  pen.drawImage(image, 0, 0, width, height);
  if (state.word < 0 || !layer) return;
  const heat = layer.heat[state.plane][state.word], most = Math.max(...heat, 1e-9);
  const [rows, columns] = [layer.rows, layer.columns];
  const small = new OffscreenCanvas(columns, rows), dark = small.getContext("2d");
  const cells = dark.createImageData(columns, rows);
  heat.forEach((value, i) => { cells.data[4 * i + 3] = 255 * 0.78 * (1 - value / most); });
  dark.putImageData(cells, 0, 0);
  // Cells at the right and the bottom may only begin inside of the picture.
  const [down, across] = [height / look().size[0], width / look().size[1]];
  pen.imageSmoothingEnabled = at("smooth").checked;
  pen.imageSmoothingQuality = "high";
  pen.drawImage(small, 0, 0, layer.cell[1] * columns * across, layer.cell[0] * rows * down);
}

function step(by) {
  const count = look().words.length;
  show((state.word + by + count) % count);
}

function stop() {
  clearInterval(state.timer);
  state.timer = 0;
  at("play").textContent = "Play";
  at("play").setAttribute("aria-pressed", "false");
}

at("play").addEventListener("click", () => {
  if (state.timer) return stop();
  at("play").textContent = "Stop";
  at("play").setAttribute("aria-pressed", "true");
  state.word = -1;
  step(1);
  state.timer = setInterval(() => step(1), 900);
});
at("smooth").addEventListener("change", draw);
at("layer").addEventListener("change", () => { state.layer = Number(at("layer").value); heads(); draw(); });
at("head").addEventListener("change", () => { state.plane = Number(at("head").value); draw(); });
at("caption").addEventListener("keydown", (event) => {
  const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (by) { event.preventDefault(); stop(); step(by); }
});
at("examples").hidden = data.looks.length < 2;
at("example").replaceChildren(...data.looks.map((one, i) => option(one.name || one.caption, i)));
at("example").addEventListener("change", () => open(Number(at("example").value)));
open(0);
parts.themes(() => {});
document.body.dataset.ready = "";
