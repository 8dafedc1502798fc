/** All that api/ and main may see of the engine. */
export { type Arrow, type Drawing, drawings, eventsOf, statesOf } from '../machines/drawing.ts'
export { shownStates } from '../machines/view.ts'
export { conditions } from '../machines/events.ts'
export { isBeingRead, isReadAnew } from './accounts/commands/placed.ts'
export { type BodyMatches, streamBytes } from './accounts/commands/reading.ts'
export { callsByPath } from './calls.ts'
export { explainAbsence, explainAccount, quarantineOf, sentence, utc } from './accounts/explanation.ts'
export * from './accounts/types.ts'
export * from './budget.ts'
export type * from './backup.ts'
export { restoreStore } from './backup.ts'
export * from './config.ts'
export type * from './developers.ts'
export { secretsOf } from './developers.ts'
export type { DiscoveredSettings, Discovery } from './discovery/discover.ts'
export type { HelpPage } from './discovery/providers.ts'
export * from './engine.ts'
export { attentionKinds, attentionOf } from './attention.ts'
export {
  callbacksLike,
  find,
  type Found,
  type FoundOfKind,
  foundKinds,
  idsMeant,
  messagesMeant,
  nameOfDeveloper,
  namesOf,
  ownerOf,
} from './find.ts'
export * from './errors.ts'
export * from './hosts.ts'
export type * from './mailboxes.ts'
export { defaultSourceOptions } from './mailboxes.ts'
export type { Connect, ConnectOutcome, ConnectTry } from './connect/index.ts'
export { connectUrl, reconnectToken, tokenLifeMs } from './connect/reconnect.ts'
export { type Brand, brandOf, logoOrigin } from './connect/brand.ts'
export * from './oauth/consent.ts'
export { abbreviated, letterOf, letterOfHost, nameOfProvider, providerTypes } from './oauth/providers.ts'
export * from './operators.ts'
export type { PeerAnswer } from './net/peers.ts'
export { lookPath, questionPath } from './every-node.ts'
export { own } from './own.ts'
export { sameText } from './secrets/seal.ts'
export { reseal } from './sealed-store.ts'
export { keptNames, retentionKeys } from './settings.ts'
export { ownUses, type UseKind, type Uses } from './uses.ts'
export { createExclusive, withinTime, yieldToLoop } from './waits.ts'
export { concernsAccount, workAs } from './observe/loop.ts'
export { createLogger, silentLogger, type Logger } from './observe/log.ts'
export { type History, type Metrics, metricsOfAll, noActor, type Sample, sampleMs } from './observe/metrics.ts'
export type { AccountNews } from './accounts/pool.ts'
export type * from './store/port.ts'
export type * from './store/records.ts'
export type { NodeFacts, Owner } from './store/slots.ts'
export { shownCounts } from './store/folder-counts.ts'
export { newId, newToken, contactId } from './store/ids.ts'
export { conditionOf, freshHealth, isMarked, isView } from './store/rows.ts'
export { checkUrl, networkOf } from './net/address.ts'
export {
  bracketed,
  describeFile,
  describeMail,
  describeMessage,
  isShownFile,
  nameMessage,
  thumbnail,
} from './webhooks/message-data.ts'
export { userAgent } from './webhooks/envelope.ts'
export type { WebhookInput } from './webhooks/admin.ts'
export type { Asking, DryRunRow } from './webhooks/explain.ts'
export { messageTrail } from './webhooks/trail.ts'
export type { Resending } from './webhooks/requeues.ts'
export { decodeBody, maxBodyBytes } from './messages/bodies.ts'
export { folderName, folderNamer, mainFileName, transliterate, usualDelimiter } from './messages/names.ts'
export { conversationOf, conversationsOf, hostedThread, type Conversation } from './messages/threads.ts'
export { compileFileName, filterParameters, type FilterParameter, type FilterVerdict } from './webhooks/match.ts'
export { headerBlockText, headerObject, readAppended } from './messages/headers.ts'
export { spool, type Spooled, withCrlf } from './spool.ts'
export { runStoreCommand } from './store/copy.ts'
export type { WireLine } from './observe/wire.ts'
