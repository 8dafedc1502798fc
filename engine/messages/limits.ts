/**
 * The bounds of what one message may make us do. A mailbox holds whatever strangers sent, so every loop over mail is bounded
 * by one of these; what lies beyond is left out, never an error.
 */

/** Bytes of a header block that are looked at: as many as are read of one (commands/reading.ts). */
export const maxHeaderBytes = 4_194_304
/** Fields of a header block. Mail in earnest has hundreds; this many are read within a second at worst. */
export const maxHeaderFields = 100_000
/** Addresses kept per header name. */
export const maxAddresses = 5_000
/** People beside the sender for whom one message counts, as contacts of the user. */
export const maxOtherContacts = 100
/** Characters of one name or address. */
export const maxAddressLength = 998
/** Characters of a subject or of another one-line value. */
export const maxLineLength = 10_000
/** Message-IDs kept of References: the root and the newest. */
export const maxReferences = 100
/** Characters of a Message-ID; a longer one is not believed. */
export const maxMessageIdLength = 998
/** Values kept of Received. */
export const maxReceived = 100
/** Parameters of one Content-Type or Content-Disposition, continuations counted singly. */
export const maxParameters = 200
/** Characters of such a value. */
export const maxStructuredLength = 16_384
/** Levels of multipart that are walked; deeper ones are not listed. */
export const maxDepth = 50
/** Parts of one message that are listed. */
export const maxParts = 1_000
/** Bytes of one body part that the body call gives, as transferred. */
export const maxBodyBytes = 16 * 1_048_576
/** Characters of a file name. */
export const maxFileNameLength = 1_000
