// Bars, drawn as SVG. The figures stand beside them in a table: the drawing is a help, not the source.

import { el, svg } from "./dom.js";
import { visible } from "./text.js";

/** Round steps for an axis: at most four. */
function steps(most) {
  if (!(most > 0)) return [0];
  const rough = most / 3, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  const all = [];
  for (let at = 0; at <= most + step * 0.001; at += step) all.push(at);
  return all;
}

/**
 * Upright bars, one for each row `{label, title, parts: [{kind, value}]}`, the parts on top of each other.
 */
export function columns(rows, { title, format, height = 170 }) {
  // As wide as it is shown, so that letters have their size.
  const width = matchMedia("(max-width: 760px)").matches ? 340 : 490;
  const sum = (row) => row.parts.reduce((all, part) => all + part.value, 0);
  const most = Math.max(...rows.map(sum), 0);
  const marks = steps(most).map((value) => [value, format(value)]);
  // A figure of this size is no wider than that.
  const left = Math.max(46, 12 + 6.7 * Math.max(...marks.map(([, text]) => text.length))), bottom = 22, top = 8;
  const inner = { width: width - left - 4, height: height - top - bottom };
  const scale = (value) => (most > 0 ? (value / most) * inner.height : 0);
  const slot = inner.width / Math.max(rows.length, 1), bar = Math.min(46, Math.max(1, slot * 0.76));
  const lines = marks.map(([value, text]) => {
    const y = top + inner.height - scale(value);
    return svg("g", { class: "axis" }, svg("line", { x1: left, x2: width - 4, y1: y, y2: y }), svg("text", { x: left - 6, y: y + 3.5, "text-anchor": "end" }, text));
  });
  const every = Math.ceil(rows.length / Math.max(1, Math.floor(inner.width / 44)));
  const bars = rows.map((row, at) => {
    const x = left + slot * at + (slot - bar) / 2;
    let y = top + inner.height;
    const parts = row.parts.filter((part) => part.value > 0).map((part) => {
      const tall = scale(part.value);
      y -= tall;
      return svg("rect", { class: part.kind, x, y, width: bar, height: Math.max(tall, 0.5) });
    });
    const label = at % every === 0 ? svg("text", { class: "label", x: x + bar / 2, y: height - 6, "text-anchor": "middle" }, row.label) : null;
    return svg("g", { class: "bar" }, svg("title", null, row.title), svg("rect", { class: "area", x: left + slot * at, y: top, width: slot, height: inner.height }), parts, label);
  });
  return el("figure", { class: "plot" }, el("figcaption", null, title), svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${title}; the table has the figures` }, lines, bars));
}

/** Lying bars with their names, one for each row `{label, value, shown}`. */
export function bars(rows, { title }) {
  const most = Math.max(...rows.map((row) => row.value), 0);
  return el("figure", { class: "plot" }, el("figcaption", null, title), el("div", { class: "bars", role: "img", "aria-label": `${title}; the table has the figures` },
    rows.map((row) => el("div", { class: "lying" }, el("bdi", { title: visible(row.full ?? row.label) }, visible(row.label)),
      svg("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" }, svg("rect", { class: "one", x: 0, y: 0, width: most > 0 ? Math.max((row.value / most) * 100, row.value > 0 ? 0.5 : 0) : 0, height: 10 })),
      el("span", null, row.shown)))));
}
