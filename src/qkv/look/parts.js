"use strict";
// What the pages of a look share: small makers, weights unpacked when they are needed, drawing, controls, light and dark.
const parts = (() => {
  const $ = (id) => document.getElementById(id);

  function make(tag, properties = {}, ...children) {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  }
  const number = (value, digits = 2) => value.toFixed(digits);
  const weight = (value) => (value !== 0 && Math.abs(value) < 0.01 ? value.toFixed(4) : value.toFixed(2));
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
  const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
  const MEAN = -1; // in place of a head
  const arrows = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };

  // Acts once in the next frame, however often it is asked to.
  function soon(act) {
    let wanted = false;
    return () => {
      if (wanted) return;
      wanted = true;
      requestAnimationFrame(() => { wanted = false; act(); });
    };
  }

  // --- weights -----------------------------------------------------------------------------------------------------

  const unpacked = new Map(); // weights number -> whole numbers; the least recently used go first
  const KEEP = 96e6; // bytes

  async function numbers(layer) {
    const known = unpacked.get(layer.weights);
    if (known) {
      unpacked.delete(layer.weights);
      unpacked.set(layer.weights, known);
      return known;
    }
    const text = atob($(`weights-${layer.weights}`).textContent);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < bytes.length; i++) bytes[i] = text.charCodeAt(i);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const buffer = await new Response(stream).arrayBuffer();
    const array = layer.bits === 16 ? new Uint16Array(buffer) : new Uint8Array(buffer);
    unpacked.set(layer.weights, array);
    let size = 0;
    for (const other of unpacked.values()) size += other.byteLength;
    for (const [key, other] of unpacked) {
      if (size <= KEEP || key === layer.weights) break;
      size -= other.byteLength;
      unpacked.delete(key);
    }
    return array;
  }

  function scaleOf(layer) {
    const levels = layer.bits === 16 ? 65536 : 256, table = new Float32Array(levels), span = layer.high - layer.low;
    for (let i = 0; i < levels; i++) {
      const unit = i / (levels - 1);
      table[i] = layer.low + span * (layer.bits === 16 ? unit : unit * unit);
    }
    return table;
  }

  // --- colours -----------------------------------------------------------------------------------------------------

  const style = () => getComputedStyle(document.documentElement);
  const named = (name) => style().getPropertyValue(name).trim();
  const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

  // 256 colours from stops.
  function ramp(stops) {
    const table = new Uint8Array(256 * 3), known = stops.map((stop) => rgb(stop.trim()));
    for (let i = 0; i < 256; i++) {
      const at = (i / 255) * (known.length - 1), base = Math.min(Math.floor(at), known.length - 2), part = at - base;
      for (let c = 0; c < 3; c++) table[3 * i + c] = Math.round(known[base][c] * (1 - part) + known[base + 1][c] * part);
    }
    return table;
  }

  // A pixel for each value, warm above zero and cold below, each on its own scale; `gamma` lifts small ones.
  function painted(values, rows, columns, high, low, gamma, [warm, cold]) {
    const image = new OffscreenCanvas(columns, rows), inside = image.getContext("2d");
    const pixels = inside.createImageData(columns, rows);
    for (let i = 0; i < rows * columns; i++) {
      const level = 3 * Math.round(255 * clamp(values[i] < 0 ? values[i] / low : values[i] / high, 0, 1) ** gamma);
      const table = values[i] < 0 ? cold : warm;
      for (let c = 0; c < 3; c++) pixels.data[4 * i + c] = table[level + c];
      pixels.data[4 * i + 3] = 255;
    }
    inside.putImageData(pixels, 0, 0);
    return image;
  }

  // As many pixels as the screen has for so large a canvas, drawn to in units of the page.
  function sizeCanvas(context, width, height) {
    const ratio = Math.min(window.devicePixelRatio || 1, 3), { canvas } = context;
    const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== w || canvas.height !== h) Object.assign(canvas, { width: w, height: h });
    Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  function thumbnail(size, pixels, plane, colours) {
    const canvas = make("canvas", { width: size.columns, height: size.rows });
    const context = canvas.getContext("2d"), image = context.createImageData(size.columns, size.rows);
    const start = plane * size.rows * size.columns;
    for (let i = 0; i < size.rows * size.columns; i++) {
      const level = pixels.charCodeAt(start + i);
      for (let c = 0; c < 3; c++) image.data[4 * i + c] = colours[3 * level + c];
      image.data[4 * i + 3] = 255;
    }
    context.putImageData(image, 0, 0);
    return canvas;
  }

  // --- controls ----------------------------------------------------------------------------------------------------

  function options(select, labels, chosen) {
    const key = labels.join("\n");
    if (select.dataset.key !== key) {
      select.dataset.key = key;
      select.replaceChildren(...labels.map((label, i) => make("option", { textContent: label, value: i })));
    }
    select.selectedIndex = chosen;
  }

  function choice(id, items, chosen) { // items: [value, label, enabled, why]
    const group = $(id);
    if (group.children.length !== items.length) {
      group.replaceChildren(...items.map(() => {
        const button = make("button", { type: "button" });
        button.setAttribute("role", "radio");
        return button;
      }));
    }
    items.forEach(([value, label, enabled = true, title = ""], i) => {
      const button = group.children[i];
      Object.assign(button, { textContent: label, disabled: !enabled, title });
      button.dataset.value = value;
      button.setAttribute("aria-checked", value === chosen);
      button.tabIndex = value === chosen ? 0 : -1;
    });
  }

  // What to do when a button of a `choice` is clicked or reached with the arrow keys.
  function onChoice(id, chosen) {
    $(id).addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (button) chosen(button.dataset.value);
    });
    $(id).addEventListener("keydown", (event) => {
      const [x, y] = arrows[event.key] || [0, 0], buttons = [...$(id).children];
      if (!x && !y) return;
      event.preventDefault();
      const next = buttons[(buttons.indexOf(document.activeElement) + x + y + buttons.length) % buttons.length];
      chosen(next.dataset.value);
      next.focus();
    });
  }

  // --- light and dark, and size ------------------------------------------------------------------------------------

  // The button that goes through the themes; `changed` is called at once, and whenever colours are others.
  function themes(changed) {
    const known = ["auto", "light", "dark"];
    let theme = "auto";
    function show() {
      $("theme").textContent = `${capital(theme)} theme`;
      if (theme === "auto") delete document.documentElement.dataset.theme;
      else document.documentElement.dataset.theme = theme;
      changed();
    }
    $("theme").addEventListener("click", () => {
      theme = known[(known.indexOf(theme) + 1) % known.length];
      show();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
    show();
  }

  const onResize = (resized) => addEventListener("resize", soon(resized));

  return {
    $, make, number, weight, clamp, capital, MEAN, arrows, soon, numbers, scaleOf, named, ramp, painted, sizeCanvas,
    thumbnail, options, choice, onChoice, themes, onResize,
  };
})();
