// What the pages of texts and of pictures share: tabs of sections, lists and a grid of layers and heads, heads in figures.
const board = (() => {
  const { $, make, number, clamp, capital, MEAN, arrows, thumbnail, options } = parts;

  // A tab for each section.
  function showSections(sections, chosen) {
    const bar = $("sections"), key = sections.map((section) => section.id).join();
    if (bar.dataset.key !== key) {
      bar.dataset.key = key;
      bar.replaceChildren(...sections.map((section) => {
        const button = make("button", { type: "button", id: `section-${section.id}`, textContent: section.label });
        button.setAttribute("role", "tab");
        button.setAttribute("aria-controls", "board");
        return button;
      }));
    }
    [...bar.children].forEach((button, i) => {
      button.setAttribute("aria-selected", i === chosen);
      button.tabIndex = i === chosen ? 0 : -1;
    });
    $("board").setAttribute("aria-labelledby", `section-${sections[chosen].id}`);
  }

  function onSection(chosen) {
    const bar = $("sections");
    bar.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (button) chosen([...bar.children].indexOf(button));
    });
    bar.addEventListener("keydown", (event) => {
      const [x] = arrows[event.key] || [0], buttons = [...bar.children];
      if (!x) return;
      event.preventDefault();
      const next = (buttons.indexOf(document.activeElement) + x + buttons.length) % buttons.length;
      chosen(next);
      buttons[next].focus();
    });
  }

  const mostHeads = (layers) => Math.max(...layers.map((layer) => layer.heads.length));
  const headName = (layer, head) => (head === MEAN ? "mean of the heads" : `head ${layer.heads[head]}`);

  // The lists of layers, under a title, and of the heads of the one that is shown.
  function showLists(title, labels, layer, state) {
    options($("layer"), labels, state.layer);
    $("layer-field").hidden = labels.length < 2;
    $("layer-field").firstChild.textContent = title;
    options($("head"), ["mean", ...layer.heads.map(String)], state.head + 1);
    $("head-field").hidden = !layer.heads.length;
  }

  // The grid of heads: a row for each layer, a column for each head and one for their mean. It is made anew where `key`
  // is another; `name` tells a layer's, `dress` adds what else a head's button has.
  function showHeads(layers, state, { key, colours, hint, name, dress }) {
    const table = $("heads"), count = mostHeads(layers);
    $("heads-part").hidden = count < 2;
    if (count < 2) return;
    if (table.dataset.key !== key) {
      table.dataset.key = key;
      table.classList.toggle("few", count + 1 <= 5);
      const widest = layers.find((layer) => layer.heads.length === count);
      const top = make("tr", {}, make("th"), ...widest.heads.map((head) => make("th", { scope: "col", textContent: head })));
      top.append(make("th", { scope: "col", className: "mean", textContent: "mean" }));
      const body = make("tbody");
      layers.forEach((layer, l) => {
        if (!layer.thumbnails) return;
        const row = make("tr", {}, make("th", { scope: "row", textContent: l + 1 })), pixels = atob(layer.thumbnails.data);
        for (let at = 0; at <= count; at++) {
          const head = at === count ? MEAN : at, cell = make("td", { className: head === MEAN ? "mean" : "" });
          row.append(cell);
          if (at < count && at >= layer.heads.length) continue;
          const button = make("button", { type: "button" });
          Object.assign(button.dataset, { layer: l, head });
          const known = head !== MEAN && layer.entropy.length;
          const sharp = known ? `, entropy ${number(layer.entropy[at])} of ${number(layer.maxEntropy)} nats` : "";
          button.title = `${name(layer, l)}, ${headName(layer, head)}${sharp}`;
          button.setAttribute("aria-label", capital(button.title));
          button.append(thumbnail(layer.thumbnails, pixels, head === MEAN ? layer.heads.length : at, colours));
          dress(button, layer, head);
          cell.append(button);
        }
        body.append(row);
      });
      table.replaceChildren(make("thead", {}, top), body);
      $("heads-hint").textContent = hint;
    }
    for (const button of table.querySelectorAll("button")) {
      const now = +button.dataset.layer === state.layer && +button.dataset.head === state.head;
      button.setAttribute("aria-pressed", now);
      button.tabIndex = now ? 0 : -1;
    }
  }

  // The layer and head that arrow keys lead to; the mean stands after the last head.
  function stepped({ layer, head }, [x, y], layers, heads) {
    const next = clamp((head === MEAN ? heads : head) + x, 0, heads);
    return { layer: clamp(layer + y, 0, layers.length - 1), head: next < heads ? next : MEAN };
  }

  // What to do when a layer or a head is chosen, in the lists or in the grid; `layers` gives those there are now.
  function onHead(layers, state, change) {
    $("layer").addEventListener("change", (event) => change({ layer: event.target.selectedIndex }));
    $("head").addEventListener("change", (event) => change({ head: event.target.selectedIndex - 1 }));
    $("heads").addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (button) change({ layer: +button.dataset.layer, head: +button.dataset.head });
    });
    $("heads").addEventListener("keydown", (event) => {
      const arrow = arrows[event.key];
      if (!arrow) return;
      event.preventDefault();
      change(stepped(state, arrow, layers(), mostHeads(layers())));
      $("heads").querySelector(`button[data-layer="${state.layer}"][data-head="${state.head}"]`)?.focus();
    });
  }

  // Entropy and distance of each head of a layer; a row that is clicked chooses its head.
  function showFigures(layer, { title, unit, hint, head, chosen }) {
    const shown = layer.entropy.length > 0 && layer.heads.length > 0;
    $("figures-part").hidden = !shown;
    if (!shown) return;
    const apart = layer.distance.length > 0, farthest = Math.max(...layer.distance, 1e-9);
    const bar = (value, part) => {
      const fill = make("i");
      fill.style.width = `${clamp(100 * part, 0, 100)}%`;
      return make("td", {}, make("span", { className: "bar" }, make("span", {}, fill), value === null ? "" : number(value)));
    };
    const names = ["head", "entropy, nats", ...(apart ? [`distance, ${unit}`] : [])];
    const top = make("tr", {}, ...names.map((name) => make("th", { scope: "col", textContent: name })));
    const rows = layer.heads.map((name, h) => {
      const row = make("tr", { className: h === head ? "now" : "" }, make("td", { textContent: name }));
      row.append(bar(layer.entropy[h], layer.entropy[h] / (layer.maxEntropy || 1)));
      if (apart) row.append(bar(layer.distance[h], layer.distance[h] / farthest));
      row.addEventListener("click", () => chosen(h));
      return row;
    });
    $("figures").replaceChildren(make("thead", {}, top), make("tbody", {}, ...rows));
    $("figures-title").textContent = `Heads of ${title} in figures`;
    $("figures-hint").textContent = hint(apart);
  }

  return { showSections, onSection, mostHeads, headName, showLists, showHeads, stepped, onHead, showFigures };
})();
