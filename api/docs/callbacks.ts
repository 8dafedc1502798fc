/** What the service sends, in the reference: each callback with its fields, and how a receiver checks the signatures. */
import type { Callback } from '../openapi-callbacks.ts'
import { examplesOf } from './example.ts'
import { html, type Html } from './html.ts'
import { inline, paragraphs } from './prose.ts'
import { fieldRow, fieldTable, typeWords, type Schemas } from './schema-view.ts'
import { verification } from './verification.ts'

type Callbacks = Readonly<Record<string, { readonly post: Callback }>>

const howToVerify =
  'Two signatures stand beside each other. The body has `timestamp`, `token` and `signature`: the signature is ' +
  'the hex HMAC-SHA256 of the digits of the timestamp right followed by the token, keyed with your API secret. It says who sent it, not ' +
  'that the rest of the body is unchanged. The headers follow Standard Webhooks and cover the whole body, so check these where you can: `webhook-signature` has one ' +
  '`v1,<base64>` per valid key, with a space between, of `<webhook-id>.<webhook-timestamp>.<body>`, the body as the bytes that came. The ' +
  'keys are the secret of the webhook (`GET …/webhooks/{webhook_id}/secret`; what follows `whsec_`, decoded from base64), after a rotation ' +
  'the old one too, and last your API secret. Status and sync callbacks belong to no webhook: the API secret alone signs them. Refuse what ' +
  'is signed with none of your keys, or whose timestamp is minutes away from your clock.\n\n' +
  'Answer 2xx at once and work afterwards. Anything else is tried again by the retry schedule, under the same `webhook-id`; 410 makes the ' +
  'webhook inactive.'

export function callbackSection(callbacks: Callbacks, schemas: Schemas): Html {
  return html`<div data-group>
    <h2 id="callbacks">Callbacks</h2>
    <section class="operation" id="verify" data-search="callbacks verify signature">
      <h3>Verify a signature</h3>
      ${paragraphs(howToVerify)}
      <h4>Node.js</h4>
      <pre>${verification}</pre>
    </section>
    ${Object.values(callbacks).map(({ post }) => oneCallback(post, schemas))}
  </div>`
}

export function callbackLinks(callbacks: Callbacks): Html {
  return html`<div data-group>
    <h2>Callbacks</h2>
    ${link('verify', '', 'Verify a signature', 'callbacks verify signature')}
    ${Object.values(callbacks).map(({ post }) => link(post.operationId, 'POST', post.summary, searchWords(post)))}
  </div>`
}

function link(id: string, method: string, summary: string, search: string): Html {
  return html`<a href="#${id}" title="${summary}" data-search="${search}"
    >${method !== '' && html`<span class="method ${method.toLowerCase()}">${method}</span>`}<span>${summary}</span></a
  >`
}

function searchWords({ summary, operationId }: Callback): string {
  return `callbacks ${operationId} ${summary}`.toLowerCase()
}

function oneCallback(callback: Callback, schemas: Schemas): Html {
  const { schema } = callback.requestBody.content['application/json']
  return html`<section class="operation" id="${callback.operationId}" data-search="${searchWords(callback)}">
    <h3><span class="method post">POST</span><code>${callback.operationId}</code></h3>
    <p class="summary">${callback.summary}</p>
    <p>${inline(callback.description)}</p>
    <div class="columns">
      <div>
        <h4>Headers</h4>
        <table class="fields">
          <tbody>
            ${callback.parameters.map(({ name, description, ...one }) => fieldRow(name, { ...one.schema, description }, schemas, true))}
          </tbody>
        </table>
        <h4>Body <small>${typeWords(schema, schemas)}</small></h4>
        ${fieldTable(schema, schemas)}
      </div>
      <div>
        <h4>Body</h4>
        ${examplesOf(schema, schemas).map((example) => html`<pre>${JSON.stringify(example, null, 2)}</pre>`)}
      </div>
    </div>
  </section>`
}
