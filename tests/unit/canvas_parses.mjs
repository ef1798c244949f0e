// Reads a JSON list of Mermaid texts on stdin; prints the place and reason of each that Mermaid cannot parse.
// LAMINA_MERMAID_DIR is a folder where `npm install mermaid jsdom` was run.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const folder = process.env.LAMINA_MERMAID_DIR;
const { JSDOM } = createRequire(`${folder}/package.json`)("jsdom");
const page = new JSDOM("<!DOCTYPE html><body></body>");
globalThis.window = page.window;
globalThis.document = page.window.document;
const module = await import(pathToFileURL(`${folder}/node_modules/mermaid/dist/mermaid.core.mjs`));
const texts = JSON.parse(readFileSync(0, "utf8"));
const failures = [];
for (const [place, text] of texts.entries()) {
  try {
    const parsed = await module.default.parse(text);
    if (parsed.diagramType !== "flowchart-v2") failures.push([place, parsed.diagramType]);
  } catch (error) {
    failures.push([place, String(error).slice(0, 400)]);
  }
}
console.log(JSON.stringify({ parsed: texts.length, failures }));
