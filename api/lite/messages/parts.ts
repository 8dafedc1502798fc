/** body, headers and raw of one message, asked of the mail server. */
import { headerBlockText, headerObject, streamBytes } from '../../../engine/index.ts'
import { defineRoute, StreamAnswer, type Route } from '../../route.ts'
import { readHeaderBlock, readParts } from './contents.ts'
import { fileHeaders } from './file-answer.ts'
import { locate, messagePaths, partUrl } from './locate.ts'
import { asNamed } from './named.ts'
import { bodyAnswer, bodyQuery, delimiterQuery, headersAnswer, headersQuery, messagePath } from './schema.ts'

const tag = 'Messages'

function bodyRoute(path: string): Route {
  return defineRoute({
    method: 'GET',
    path: `${path}/body`,
    auth: 'developer',
    tag,
    summary: 'Get the bodies of a message',
    description: 'Text parts as UTF-8, transfer encoding and charset undone. `type` = only parts of this MIME type.',
    request: { path: messagePath, query: bodyQuery },
    response: bodyAnswer,
    errors: [503, 504],
    async handler({ path, query }, call) {
      const located = await locate(call, path, query.delimiter)
      call.touchesImap(located.user)
      const bodies = await asNamed({ message: path.message_id }, readParts(call, located.message, query.type))
      return { resource_url: partUrl(call, located, path, 'body'), bodies }
    },
  })
}

function headersRoute(path: string): Route {
  return defineRoute({
    method: 'GET',
    path: `${path}/headers`,
    auth: 'developer',
    tag,
    summary: 'Get the headers of a message',
    request: { path: messagePath, query: headersQuery },
    response: headersAnswer,
    errors: [503, 504],
    async handler({ path, query }, call) {
      const located = await locate(call, path, query.delimiter)
      call.touchesImap(located.user)
      const block = await asNamed({ message: path.message_id }, readHeaderBlock(call, located.message))
      return {
        resource_url: partUrl(call, located, path, 'headers'),
        headers: query.raw === true ? headerBlockText(block) : headerObject(block),
      }
    },
  })
}

function rawRoute(path: string): Route {
  return defineRoute({
    method: 'GET',
    path: `${path}/raw`,
    auth: 'developer',
    tag,
    summary: 'Get the whole message as it is on the mail server',
    request: { path: messagePath, query: delimiterQuery },
    response: 'binary',
    errors: [503, 504],
    async handler({ path, query }, call) {
      const { user, account, message } = await locate(call, path, query.delimiter)
      call.touchesImap(user)
      await call.reserve(streamBytes)
      const stream = await asNamed({ message: path.message_id }, call.engine.accounts.streamRaw(account.id, message))
      return new StreamAnswer(stream, fileHeaders('message/rfc822', `${message.id}.eml`))
    },
  })
}

export const messagePartRoutes: readonly Route[] = messagePaths.flatMap((path) => [
  bodyRoute(path),
  headersRoute(path),
  rawRoute(path),
])
