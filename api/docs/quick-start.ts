/** The quick start: from a key to a verified callback in five curl lines. test/demo runs them. */
import { html, type Html, inline } from '../html.ts'

const settings =
  "export KEY=… SECRET=… RECEIVER=https://app.example.com/mail\nexport EMAIL=anna@example.com PASSWORD='…' SERVER=imap.example.com PORT=993 TLS=1"

/** A curl line with the API key. `fields` are words of the shell. */
function call(url: string, ...fields: readonly string[]): string {
  return [`curl -u "$KEY:$SECRET" "${url}"`, ...fields].join(' \\\n  ')
}

function stepsOf(base: string) {
  const user = `${base}/lite/users/$ID`
  return [
    {
      title: 'Key',
      text: 'Whoever runs the service gives you an API key with its secret. This lists your users.',
      line: call(`${base}/lite/users`),
    },
    {
      title: 'Connect',
      text: 'The login is tried first. When it fails, nothing is created and `feedback` says why. The answer has the id of the user: `ID=…`',
      line: call(
        `${base}/lite/users`,
        '--data-urlencode "email=$EMAIL" --data-urlencode "username=$EMAIL" --data-urlencode "password=$PASSWORD"',
        '-d "server=$SERVER" -d "port=$PORT" -d "use_ssl=$TLS" -d type=imap',
      ),
    },
    {
      title: 'List',
      text: 'The newest messages; `0` is the first email account of the user.',
      line: call(`${user}/email_accounts/0/messages?limit=5`),
    },
    {
      title: 'Webhook',
      text: 'New mail is posted to your server, with its text. The answer has its id: `WEBHOOK=…`',
      line: call(`${user}/webhooks`, '--data-urlencode "callback_url=$RECEIVER" -d include_body=1'),
    },
    {
      title: 'Verify',
      text: 'A signed sample is sent to your server, and the answer says what your server said. Your server verifies the signature before it uses a callback.',
      line: call(`${user}/webhooks/$WEBHOOK/test`, '-X POST'),
    },
  ]
}

export function quickStart(base: string, root: string): Html {
  return html`<section class="start" data-rest>
    <h2 id="quick-start">Quick start</h2>
    <p>${inline('Set these in your shell first. `npm run demo` prints such a line, with a mailbox to try it on.')}</p>
    <pre>${settings}</pre>
    <ol>
      ${stepsOf(base).map(
        ({ title, text, line }) =>
          html`<li>
            <p><strong>${title}.</strong> ${inline(text)}</p>
            <pre data-step="${title}">${line}</pre>
          </li>`,
      )}
    </ol>
    <p>
      Code that verifies a signature is in <a href="${root}/callbacks#verify">Callbacks and signatures</a>. In
      TypeScript, the package in <code>client/</code> has the types of all calls and callbacks, and verifies.
    </p>
  </section>`
}
