/** The rig of lite, with what the tests of 2.0 begin with: an account with one source. */
import { userBody } from '../../support/users.ts'
import { allRead, type LiteRig, type MailboxOptions, type TestMailbox } from '../lite/rig.ts'

export interface V2Mailbox extends TestMailbox {
  /** '/2.0/accounts/{id}' */
  readonly account: string
  /** '/2.0/accounts/{id}/sources/{label}' */
  readonly source: string
}

/** Made by lite, as one record serves both; `options` of the source are set by 2.0. */
export async function v2Mailbox(
  rig: LiteRig,
  name: string,
  options: MailboxOptions & { readonly source?: Readonly<Record<string, unknown>> } = {},
): Promise<V2Mailbox> {
  const { source: wanted, ...mailbox } = options
  const box = await rig.mailbox(name, mailbox)
  const account = `/2.0/accounts/${box.userId}`
  const source = `${account}/sources/${encodeURIComponent(box.label)}`
  if (wanted !== undefined) await rig.ok('POST', source, wanted)
  return { ...box, account, source }
}

/** One more source, of a mailbox that the mail server has; all of it has been read. */
export async function addSource(rig: LiteRig, { account, userId }: V2Mailbox, email: string) {
  const server = { host: rig.imap.host, port: rig.imap.port, password: 'secret' }
  const label = String((await rig.ok('POST', `${account}/sources`, userBody(server, email)))['label'])
  const accounts = await rig.engine.store.accounts.listByUser(userId)
  const accountId = accounts.find((one) => one.label === label)?.id ?? ''
  await allRead(rig.engine, accountId)
  return { label, accountId }
}

/** HTML with the image of a signature, a winmail.dat and a PDF. */
export const raw = (subject: string, to: string): string =>
  [
    'From: "Ada L." <Ada@sender.example>',
    `To: ${to}, Bob <bob@x.example>`,
    'Cc: carol@c.example',
    `Subject: ${subject}`,
    `Message-ID: <${subject}@sender.example>`,
    'In-Reply-To: <root@sender.example>',
    'References: <root@sender.example> <mid@sender.example>',
    'Date: Mon, 06 May 2024 10:00:00 +0000',
    'Received: from mx.example.org by imap.example.com; Mon, 06 May 2024 10:00:05 +0000',
    'List-Id: <list.example>',
    'MIME-Version: 1.0',
    'Content-Type: multipart/mixed; boundary=b',
    '',
    '--b',
    'Content-Type: multipart/related; boundary=r',
    '',
    '--r',
    'Content-Type: text/html; charset=utf-8',
    '',
    '<p>Hello <img src="cid:logo@x"></p>',
    '--r',
    'Content-Type: image/png; name=logo.png',
    'Content-ID: <logo@x>',
    'Content-Disposition: inline; filename=logo.png',
    'Content-Transfer-Encoding: base64',
    '',
    'iVBORw0KGgo=',
    '--r--',
    '--b',
    'Content-Type: application/ms-tnef; name=winmail.dat',
    'Content-Disposition: attachment; filename=winmail.dat',
    'Content-Transfer-Encoding: base64',
    '',
    'eJ8+Ig==',
    '--b',
    'Content-Type: application/pdf; name="report_20240506.pdf"',
    'Content-Disposition: attachment; filename="report_20240506.pdf"',
    'Content-Transfer-Encoding: base64',
    '',
    'JVBERi0=',
    '--b--',
    '',
  ].join('\r\n')
