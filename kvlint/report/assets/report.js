"use strict";
(() => {
  // Everything here is a convenience: the page holds all of its content, and its colours work, without it.
  const find = (selector) => document.querySelector(selector);
  const all = (selector) => Array.from(document.querySelectorAll(selector));

  // The chosen colours are kept, where the browser lets a page keep anything.
  const key = "kvlint-theme";
  try {
    const kept = localStorage.getItem(key);
    const radio = all('input[name="theme"]').find((input) => input.value === kept);
    if (radio) radio.checked = true;
    for (const input of all('input[name="theme"]')) {
      input.addEventListener("change", () => localStorage.setItem(key, input.value));
    }
  } catch {
    // No storage: the choice holds until the page is left.
  }

  const folds = () => all(".finding:not([hidden]) > details");
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = folds().filter((details) => !details.open);
    for (const details of folded) details.open = true;
  });
  addEventListener("afterprint", () => {
    for (const details of folded) details.open = false;
  });

  const form = find("#filter");
  if (!form) return;
  form.hidden = false;
  const text = find("#filter-text");
  const boxes = all('#filter input[name="rule"]');
  const groups = all(".file").map((group) => ({
    element: group,
    path: group.querySelector("h3").textContent.toLowerCase(),
    findings: Array.from(group.querySelectorAll(".finding")),
  }));
  const total = groups.reduce((sum, group) => sum + group.findings.length, 0);
  let words = null; // what each finding is searched by, gathered when first needed

  const searched = (finding, path) => {
    words ??= new Map();
    if (!words.has(finding)) {
      const told = [finding.querySelector("h4"), finding.querySelector(".message")].map((part) => part.textContent);
      words.set(finding, [path, ...told].join(" ").toLowerCase());
    }
    return words.get(finding);
  };

  const apply = () => {
    const wanted = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    const rules = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    let shown = 0;
    for (const { element, path, findings } of groups) {
      let here = 0;
      for (const finding of findings) {
        const fits =
          rules.has(finding.dataset.rule) && wanted.every((word) => searched(finding, path).includes(word));
        finding.hidden = !fits;
        here += fits;
      }
      element.hidden = here === 0;
      shown += here;
    }
    find("#shown").textContent = `${shown} of ${total} shown`;
  };

  let pending = 0;
  text.addEventListener("input", () => {
    clearTimeout(pending);
    pending = setTimeout(apply, 120);
  });
  for (const box of boxes) box.addEventListener("change", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(apply));
  find("#unfold").addEventListener("click", () => {
    for (const details of folds()) details.open = true;
  });
  find("#fold").addEventListener("click", () => {
    for (const details of folds()) details.open = false;
  });

  // A link to a finding that is folded or filtered away shows it.
  const reveal = () => {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target || !target.matches(".finding")) return;
    target.hidden = false;
    target.closest(".file").hidden = false;
    const details = target.querySelector("details");
    if (details) details.open = true;
  };
  addEventListener("hashchange", reveal);
  reveal();
})();
