/** A mailbox of 200,000 stored messages (50,000 on MongoDB) whose mail server has gone: the index alone answers. */
import { join } from 'node:path'
import { createImapServer } from '../../support/imap-server/index.ts'
import { mail } from '../../support/mail.ts'
import { copyMessages, copyMessagesOnMongo } from '../../support/many-messages.ts'
import { createClient, type Service } from '../../support/service.ts'
import { createUser, listed } from '../../support/users.ts'

interface Owner {
  readonly key: string
  readonly secret: string
}

/** Of the developer, by a running service, which is stopped. Returns the path of the email account. */
export async function storeLargeMailbox(service: Service, owner: Owner, mongoUri: string | null): Promise<string> {
  const client = createClient(() => service.url, `${owner.key}:${owner.secret}`)
  const email = 'large@mallory.example'
  const imap = await createImapServer({ users: { [email]: { password: owner.secret } } })
  imap.append(email, 'INBOX', mail({ to: email, subject: 'Plain' }))
  const id = await createUser(client, { ...imap, password: owner.secret }, email)
  await listed(client, id, 'Plain')
  const path = `/lite/users/${id}/email_accounts/0`
  const [message] = await client.list(`${path}/messages`)
  await service.stop()
  await imap.close()
  const messageId = String(message?.['message_id'])
  if (mongoUri === null) copyMessages(join(service.dataDir, 'mailroom.sqlite'), messageId, 200_000)
  else await copyMessagesOnMongo(mongoUri, messageId, 50_000)
  return path
}
