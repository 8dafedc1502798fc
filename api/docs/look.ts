/** How the reference looks, and the filter of its list. */
import { basics } from '../html.ts'

export const style = `${basics}
a { color: inherit; text-decoration: none; }
nav { position: fixed; inset: 0 auto 0 0; width: 310px; overflow-y: auto; padding: 22px 16px; border-right: 1px solid var(--line); background: var(--panel); }
nav h1 { font-size: 19px; margin: 0 8px 2px; } nav p { margin: 0 8px 14px; color: var(--soft); font-size: 13px; }
nav input { width: 100%; padding: 8px 10px; margin-bottom: 10px; border: 1px solid var(--line); border-radius: 8px; font: inherit; color: inherit; background: var(--paper); }
nav h2 { margin: 16px 8px 4px; font-size: 11.5px; letter-spacing: .07em; text-transform: uppercase; color: var(--soft); }
nav div a { display: flex; gap: 8px; align-items: baseline; padding: 3px 8px; border-radius: 6px; font-size: 13.5px; }
nav div a:hover { background: var(--line); } nav div a span:last-child { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
main { overflow-wrap: anywhere; margin-left: 310px; padding: 34px 44px 120px; max-width: 1440px; }
main > header { max-width: 760px; } main > header h1 { margin: 0 0 6px; font-size: 30px; letter-spacing: -.01em; }
.base { display: inline-block; padding: 3px 10px; border-radius: 6px; background: var(--panel); border: 1px solid var(--line); }
main h2 { margin: 54px 0 0; padding-bottom: 8px; font-size: 22px; border-bottom: 2px solid var(--line); }
.operation { padding: 26px 0 30px; border-bottom: 1px solid var(--line); }
.operation h3 { display: flex; flex-wrap: wrap; gap: 10px; align-items: center; margin: 0 0 4px; font-weight: 500; }
.operation h3 code { min-width: 0; font-size: 15px; overflow-wrap: anywhere; } var { font-style: normal; color: var(--accent); }
.summary { margin: 0 0 6px; font-weight: 600; }
.columns { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 36px; }
h4 { margin: 18px 0 6px; font-size: 13px; } h4 small { font-weight: 400; color: var(--soft); }
.method { font: 700 11px/1 ui-monospace, monospace; letter-spacing: .03em; padding: 5px 8px; border-radius: 5px; color: #fff; background: var(--soft); }
.method.get { background: var(--get); } .method.post { background: var(--post); } .method.put { background: var(--put); } .method.delete { background: var(--delete); }
@media (prefers-color-scheme: dark) { .method { color: #0b0e15; } }
nav .method { flex: none; width: 46px; padding: 3px 0; font-size: 9.5px; text-align: center; }
.public { margin-left: 10px; padding: 2px 8px; border-radius: 99px; font-size: 12px; font-weight: 400; color: var(--soft); border: 1px solid var(--line); }
table.fields { width: 100%; table-layout: fixed; border-collapse: collapse; } .fields th, .fields td { padding: 6px 0; text-align: left; vertical-align: top; border-top: 1px solid var(--line); font-weight: 400; }
.fields th { width: 38%; padding-right: 14px; overflow-wrap: anywhere; } .fields p { margin: 2px 0 0; font-size: 13.5px; } .type, .default { font-size: 13px; color: var(--soft); }
.default::before { content: " · "; } .required { margin-left: 3px; color: var(--delete); }
pre { margin: 0; padding: 12px 14px; overflow-x: auto; max-height: 420px; border-radius: 8px; color: var(--code-ink, #e6ebf5); background: var(--code); }
pre + pre { margin-top: 8px; } details { margin-top: 10px; } details summary { cursor: pointer; color: var(--soft); font-size: 13.5px; }
.errors { color: var(--soft); font-size: 13px; } [hidden] { display: none !important; }
@media (max-width: 1100px) { .columns { grid-template-columns: minmax(0, 1fr); gap: 0; } }
@media (max-width: 760px) { nav { position: static; width: auto; max-height: 45vh; border-right: 0; } main { margin: 0; padding: 24px 18px 80px; } }
`

/** The filter of the list; without it the page is whole. */
export const script = `
const box = document.querySelector('nav input')
box.addEventListener('input', () => {
  const words = box.value.toLowerCase().split(/\\s+/).filter(Boolean)
  for (const item of document.querySelectorAll('[data-search]')) {
    item.hidden = !words.every((word) => item.dataset.search.includes(word))
  }
  for (const group of document.querySelectorAll('[data-group]')) {
    group.hidden = !group.querySelector('[data-search]:not([hidden])')
  }
})
`
