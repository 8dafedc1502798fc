/**
 * A private, real Courier on a free loopback port, in the chroot that mail-servers.sh makes (root only). Its directory
 * lies in the chroot and is gone afterwards; mounts that only its processes see put it in the place of /etc/courier and
 * /run/courier. Any user name with one password: a mailbox is made at its first login. Names of folders: "." between
 * levels, everything below INBOX. A new password ends no connection.
 */
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { createDaemon, openServer, startImap, type PrivateServer } from './daemon.ts'
import { courierRoot } from './mail-home.ts'
import { freePort } from './port.ts'
import { openRawImap, type RawImap } from './raw-imap.ts'

export async function startCourier(): Promise<PrivateServer> {
  const root = courierRoot()
  if (root === null) throw new Error('Courier is not installed: bash test/support/mail-servers.sh install courier')
  const host = '127.0.0.1'
  const port = await freePort()
  const { outside, inside } = makeDirectory(root, host, port)
  const script = `mount --bind "$0/etc" "$1/etc/courier" && mount --bind "$0/run" "$1/run/courier" && exec chroot "$1" \
    /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin sh "$2/start"`
  const command = ['unshare', '--mount', 'sh', '-c', script, outside, root, inside] as const
  const daemon = createDaemon(() => command, process.env)
  const log = (): string => `Courier said: ${daemon.output().slice(-4000)}`
  let password = 'correct-horse'
  const store = (): void => writeFileSync(join(outside, 'password'), `${password}\n`)
  const start = () => startImap(daemon, { host, port }, log)
  const connect = (user: string): Promise<RawImap> => openRawImap({ host, port, user, password, synchronising: true })

  store()
  return openServer({
    ...{ daemon, host, port, connect, start, log },
    password: () => password,
    setPassword(next) {
      password = next
      store()
      return Promise.resolve()
    },
    clear: () => rmSync(outside, { recursive: true, force: true, maxRetries: 5 }),
  })
}

/** The same directory by its two names. */
function makeDirectory(
  root: string,
  host: string,
  port: number,
): { readonly outside: string; readonly inside: string } {
  const parent = join(root, 'var/lib/mailroom')
  for (const name of [parent, join(root, 'run/courier')]) mkdirSync(name, { recursive: true })
  const outside = mkdtempSync(join(parent, 'courier-'))
  chmodSync(outside, 0o755)
  const inside = `/var/lib/mailroom/${basename(outside)}`
  for (const name of ['mail', 'run/authdaemon']) mkdirSync(join(outside, name), { recursive: true })
  cpSync(join(root, 'etc/courier'), join(outside, 'etc'), { recursive: true })
  writeFileSync(join(outside, 'etc/authdaemonrc'), logins)
  writeFileSync(join(outside, 'etc/authProg'), checker(inside), { mode: 0o755 })
  writeFileSync(join(outside, 'start'), starter(host, port))
  return { outside, inside }
}

const logins = `authmodulelist="authpipe"
daemons=1
authdaemonvar=/run/courier/authdaemon
`

const starter = (host: string, port: number): string => `
set -a
. /etc/courier/imapd
/usr/lib/courier/courier-authlib/authdaemond &
exec couriertcpd -address=${host} -maxprocs=200 -maxperip=200 -nodnslookup ${port} \\
  /usr/lib/courier/courier/imaplogin /usr/bin/imapd Maildir
`

/** Answers the requests of authpipe: who a user is, and whether a login is right. */
const checker = (dir: string): string => `#!/bin/sh
found() {
  home=${dir}/mail/$1
  if [ ! -d "$home" ]; then
    mkdir "$home" && maildirmake.courier "$home/Maildir"
    for name in Sent Drafts Trash Junk Archive; do maildirmake.courier -f $name "$home/Maildir"; done
    chown -R 1000:1000 "$home"
  fi
  printf 'ADDRESS=%s\\nUID=1000\\nGID=1000\\nHOME=%s\\nMAILDIR=%s\\n.\\n' "$1" "$home" "$home/Maildir"
}
while read -r word rest; do
  case $word in
    PRE) found "\${rest##* }" ;;
    AUTH)
      given=$(dd bs=1 count="$rest" 2>/dev/null)
      if [ "$(echo "$given" | sed -n 4p)" = "$(cat ${dir}/password)" ]; then found "$(echo "$given" | sed -n 3p)"; else echo FAIL; fi
      ;;
    *) echo FAIL ;;
  esac
done
`
