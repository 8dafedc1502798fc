/** What every Content-Transfer-Encoding has: fed in pieces of any size; `end` gives what was still held back. */
export interface TransferDecoder {
  write(chunk: Buffer): Buffer
  end(): Buffer
}
