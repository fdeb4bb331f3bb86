// Texts of the page whose contrast with their ground is below 4.5, one of each colour pair.
const numbers = (colour) => colour.match(/[\d.]+/g).map(Number);
const light = (colour) => {
  const [r, g, b] = numbers(colour).slice(0, 3).map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const ground = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const colour = getComputedStyle(at).backgroundColor;
    if ((numbers(colour)[3] ?? 1) > 0) return colour;
  }
  return "rgb(255, 255, 255)";
};
const found = {};
for (const element of document.querySelectorAll("body *")) {
  const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  if (!own || element.closest("script, style") || !element.getClientRects().length) continue;
  const [text, back] = [getComputedStyle(element).color, ground(element)];
  const [a, b] = [light(text), light(back)];
  const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (contrast < 4.5) found[`${text} on ${back}`] = `${element.tagName} ${element.className}: ${contrast.toFixed(2)}`;
}
return Object.entries(found).map((pair) => pair.join(" "));
