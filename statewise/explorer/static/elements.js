// Elements from names, attributes and texts. Texts are never parsed, so that what was typed stays what was typed.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export const make = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);
export const draw = (name, attributes = {}, ...children) =>
  fill(document.createElementNS(SVG, name), attributes, children);
export const find = (id) => document.getElementById(id);

export const percent = (share) =>
  share === null ? "–" : share > 0 && share < 0.001 ? "<0.1 %" : `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;
export const digits = (value, places = 2) => (value === null ? "–" : value.toFixed(places).replace("-", "−"));

// White space and control characters would not be seen.
export const visible = (token) =>
  token.replace(/[\u0000-\u001f\u007f]/g, (sign) => String.fromCharCode(0x2400 + (sign === "\u007f" ? 0x21 : sign.charCodeAt(0))))
    .replace(/ /g, "␣");

// A table with a head; cells are texts or elements.
export function table(caption, heads, rows) {
  return make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    make("table", {},
      make("caption", { class: "unseen" }, caption),
      make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head)))),
      make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((cell, place) =>
        place === 0 ? make("th", { scope: "row" }, cell) : make("td", {}, cell)))))));
}
