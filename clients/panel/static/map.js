"use strict";
/* Draws the marks of the map as SVG. Places come from a simulation that always begins the same, so the same memory looks
the same tomorrow; a mark that was drawn in this tab stays where it was. Nothing moves. */
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const WIDTH = 900, HEIGHT = 520, TICKS = 240, PASSES = 60;
  const known = new Map();

  function made(name, attributes, parent) {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    parent?.append(element);
    return element;
  }

  const isName = (mark) => mark.kind !== "record";
  const radius = (mark) => 4 + 4 * Math.min(mark.strength, 1);
  const halfWidth = (mark) => isName(mark) ? 10 + mark.label.length * 3.4 : radius(mark);

  const halfHeight = (mark) => mark.kind === "pool" ? 16 : isName(mark) ? 12 : radius(mark);

  /* Moves marks apart that cover each other, along the shorter way; false once none does. */
  function spread(marks) {
    let moved = false;
    for (let i = 0; i < marks.length; i += 1) {
      for (let j = i + 1; j < marks.length; j += 1) {
        const [a, b] = [marks[i], marks[j]];
        const x = halfWidth(a) + halfWidth(b) + 6 - Math.abs(a.x - b.x);
        const y = halfHeight(a) + halfHeight(b) + 6 - Math.abs(a.y - b.y);
        if (x <= 0 || y <= 0) continue;
        moved = true;
        const axis = x < y ? "x" : "y", way = (a[axis] < b[axis] ? -1 : 1) * Math.min(x, y) / 2;
        a[axis] += way;
        b[axis] -= way;
      }
    }
    return moved;
  }

  function placed(marks, links) {
    for (const mark of marks) {
      const before = known.get(`${mark.kind}:${mark.id}`);
      if (before) [mark.fx, mark.fy] = before;
    }
    const simulation = d3.forceSimulation(marks)
      .force("charge", d3.forceManyBody().strength((mark) => isName(mark) ? -260 : -60))
      .force("link", d3.forceLink(links.map((link) => ({ ...link }))).distance((link) => 36 + 0.7 * (halfWidth(link.source) + halfWidth(link.target))).strength(0.5))
      .force("x", d3.forceX(WIDTH / 2).strength(0.05))
      .force("y", d3.forceY(HEIGHT / 2).strength(0.09))
      .force("collide", d3.forceCollide((mark) => isName(mark) ? Math.max(16, halfWidth(mark) * 0.85) : 9).iterations(2))
      .stop();
    simulation.tick(TICKS);
    for (let pass = 0; pass < PASSES && spread(marks); pass += 1);
    for (const mark of marks) known.set(`${mark.kind}:${mark.id}`, [mark.x, mark.y]);
  }

  function trustClass(mark) {
    if (mark.status === "quarantined" || mark.status === "provisional") return "unsure";
    if (mark.status === "retired") return "old";
    return mark.trust === "user" ? "user" : "other";
  }

  function drawMark(mark, layer, said) {
    const link = made("a", { href: mark.to, class: `mark ${mark.kind}`, "aria-label": mark.label }, layer);
    link.setAttribute("transform", `translate(${mark.x.toFixed(1)} ${mark.y.toFixed(1)})`);
    made("title", {}, link).textContent = mark.size ? `${mark.label}: ${mark.size}` : mark.label;
    if (mark.kind === "record") {
      made("circle", { r: radius(mark).toFixed(1), class: trustClass(mark) }, link);
    } else {
      const half = halfWidth(mark), height = mark.kind === "pool" ? 32 : 24;
      made("rect", { x: -half, y: -height / 2, width: 2 * half, height, rx: height / 2 }, link);
      made("text", { "text-anchor": "middle", dy: "0.35em" }, link).textContent = mark.label;
    }
    const tell = () => { said.textContent = mark.kind === "record" ? `“${mark.label}”` : mark.label; };
    link.addEventListener("focus", tell);
    link.addEventListener("pointerenter", tell);
  }

  function draw(canvas) {
    const { marks, links } = JSON.parse(canvas.dataset.map);
    placed(marks, links);
    const xs = marks.flatMap((mark) => [mark.x - halfWidth(mark), mark.x + halfWidth(mark)]);
    const ys = marks.flatMap((mark) => [mark.y - 20, mark.y + 20]);
    const [left, top] = [Math.min(...xs) - 16, Math.min(...ys) - 16];
    const [width, height] = [Math.max(...xs) + 16 - left, Math.max(...ys) + 16 - top];
    const [wide, high] = [Math.max(width, 720), Math.max(height, 360)];
    const box = [left - (wide - width) / 2, top - (high - height) / 2, wide, high];
    const drawing = made("svg", { viewBox: box.map(Math.round).join(" ") });
    for (const link of links) {
      const [from, to] = [marks[link.source], marks[link.target]];
      const points = { x1: from.x, y1: from.y, x2: to.x, y2: to.y };
      made("line", { ...points, class: link.kind }, drawing);
    }
    const said = document.getElementById("map-said");
    for (const mark of marks) drawMark(mark, drawing, said);
    canvas.replaceChildren(drawing);
    htmx.process(canvas);
  }

  document.addEventListener("htmx:after:swap", () => {
    const canvas = document.getElementById("map");
    if (canvas && !canvas.firstElementChild) draw(canvas);
  });
})();
