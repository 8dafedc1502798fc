/**
 * A self-signed certificate without openssl, so that TLS is tested on a machine with nothing but Node. DER by hand
 * (X.690).
 */
import { generateKeyPairSync, randomBytes, sign } from 'node:crypto'

function der(tag: number, ...contents: readonly Buffer[]): Buffer {
  const content = Buffer.concat(contents)
  const { length } = content
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}

const sequence = (...contents: readonly Buffer[]): Buffer => der(0x30, ...contents)
const ecdsaWithSha256 = sequence(der(0x06, Buffer.from('2a8648ce3d040302', 'hex')))
const commonName = Buffer.from('550403', 'hex')
const subjectAltName = Buffer.from('551d11', 'hex')
/** Extensions that no client lets a server show: for clients alone, and one that is critical and unknown. */
const flaws = {
  purpose: sequence(
    der(0x06, Buffer.from('551d25', 'hex')),
    der(0x04, sequence(der(0x06, Buffer.from('2b06010505070302', 'hex')))),
  ),
  extension: sequence(der(0x06, Buffer.from('2a0304', 'hex')), der(0x01, Buffer.from([0xff])), der(0x04)),
}

function name(text: string): Buffer {
  return sequence(der(0x31, sequence(der(0x06, commonName), der(0x0c, Buffer.from(text)))))
}

function time(at: number): Buffer {
  const text = new Date(at).toISOString().replace(/[-:T]/g, '').slice(0, 14)
  return der(0x18, Buffer.from(`${text}Z`))
}

export interface Certificate {
  readonly key: string
  readonly cert: string
}

/** For localhost and 127.0.0.1 unless another host is given; valid from yesterday to tomorrow. */
export function selfSigned(host = 'localhost', flaw?: keyof typeof flaws): Certificate {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const day = 86_400_000
  const names = [der(0x82, Buffer.from(host))]
  if (host === 'localhost') names.push(der(0x87, Buffer.from([127, 0, 0, 1])))
  const extension = sequence(der(0x06, subjectAltName), der(0x04, sequence(...names)))
  const serial = Buffer.concat([Buffer.from([0x01]), randomBytes(8)])
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, serial),
    ecdsaWithSha256,
    name(host),
    sequence(time(Date.now() - day), time(Date.now() + day)),
    name(host),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(extension, ...(flaw === undefined ? [] : [flaws[flaw]]))),
  )
  const signature = sign('sha256', body, privateKey)
  const certificate = sequence(body, ecdsaWithSha256, der(0x03, Buffer.from([0]), signature))
  const lines = certificate.toString('base64').replace(/.{64}(?=.)/g, '$&\n')
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
    cert: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`,
  }
}
