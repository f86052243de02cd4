// Small tools over the document. Everything that came in is set as text, never as markup.

export const element = (id) => document.getElementById(id);

// Only what changed is touched: a text that is set anew would lose a selection, and be read out again.
export function tell(target, text) {
  const node = typeof target === "string" ? element(target) : target;
  if (node.textContent !== text) node.textContent = text;
}

export function make(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

export function drawn(name, attributes = {}) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}

// Rows that stay the same nodes for the same key, so that the focus stays where it is. Of equal keys the first is the
// first, and so on.
export function keyed(parent, items, keyOf, build, update) {
  const known = new Map([...parent.children].map((node) => [node.dataset.key, node]));
  const times = new Map();
  let place = parent.firstChild;
  for (const item of items) {
    const plain = String(keyOf(item));
    const before = times.get(plain) ?? 0;
    times.set(plain, before + 1);
    const key = `${before} ${plain}`;
    let node = known.get(key);
    known.delete(key);
    if (!node) {
      node = build(item);
      node.dataset.key = key;
    }
    if (node === place) place = place.nextSibling;
    else parent.insertBefore(node, place);
    update(node, item);
  }
  for (const node of known.values()) node.remove();
}

// A row with a cell for each column; `cells` are filled by the caller. On a narrow page each cell has its label.
export function row(labels, numbers = []) {
  const line = make("tr");
  labels.forEach((label, index) => {
    const cell = make(index === 0 ? "th" : "td", index === 0 ? { scope: "row" } : {});
    cell.dataset.label = label;
    if (numbers.includes(index)) cell.className = "number";
    line.append(cell);
  });
  return line;
}

let announced = "";

// For who does not see the page: only what matters, once.
export function announce(text) {
  if (text === announced) return;
  announced = text;
  tell("said", text);
}
