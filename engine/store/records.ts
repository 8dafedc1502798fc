/**
 * What the store keeps: plain records, the same in every adapter. Names end in At for milliseconds since 1970 (UTC),
 * ids are lower-case hex. A record never holds a driver type, a class instance or a secret in the clear.
 */
export type * from './records/callbacks.ts'
export type * from './records/mail.ts'
export type * from './records/owners.ts'
