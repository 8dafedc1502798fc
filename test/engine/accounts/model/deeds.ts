/** Does the steps of a scenario to a world. */
import type { FolderRecord, MessageRecord, Placement } from '../../../../engine/store/records.ts'
import { letterOf, mail } from '../../../support/mail.ts'
import type { Step } from './steps.ts'
import type { Command, World } from './world.ts'

type Deed<Name extends Step['do']> = Extract<Step, { readonly do: Name }>

/** Mail of one subject, which no other mail has. */
export function letter(subject: string, at: number): string {
  return mail({ to: 'ann@mail.example', subject, date: new Date(at) })
}

interface Place {
  readonly subject: string
  readonly path: string
  readonly uid: number
}

function placeAt({ truth }: World, index: number): Place | null {
  const all = [...truth.mailbox]
    .flatMap(([subject, paths]) =>
      [...paths].flatMap(([path, { uids }]) => uids.map((uid) => ({ subject, path, uid }))),
    )
    .sort((a, b) => a.path.localeCompare(b.path) || a.uid - b.uid)
  return all[index % Math.max(1, all.length)] ?? null
}

function pathAt({ server }: World, index: number): string {
  const all = server.folders('ann')
  return all[index % all.length]?.name ?? 'INBOX'
}

const has = ({ server }: World, path: string): boolean => server.folders('ann').some((folder) => folder.name === path)

/** Of folders that our API and the others leave where they are. */
const isFixed = (path: string): boolean => ['INBOX', 'Archive', 'Sent'].includes(path)

/** `number`: of the step, for the subject of new mail. */
export async function take(world: World, step: Step, number: number): Promise<void> {
  world.next(step.do === 'quiet' || step.do === 'pass')
  const { server, faults, time } = world
  switch (step.do) {
    case 'pass':
      return time.pass(step.ms)
    case 'quiet':
      return world.quiet()
    case 'append':
      return append(world, step, number)
    case 'flag':
    case 'remove':
    case 'move':
    case 'copy':
      return toMessage(world, step)
    case 'cut':
      server.dropConnections()
      break
    case 'lose':
      faults.lose(step.loss, step.after)
      break
    case 'lag':
      faults.lag(step.which, step.byMs, 60_000)
      break
    case 'deafen':
      faults.deafen(step.which, 60_000)
      break
    case 'hide':
      hide(world, step, number)
      break
    case 'crash':
      world.crash(step.downMs)
      break
    case 'reuse':
      reuse(world, step, number)
      break
    default:
      toFolder(world, step)
  }
}

function toFolder(world: World, step: Deed<'renumber' | 'create' | 'drop' | 'rename'>): void {
  if (step.do === 'create') create(world, step)
  else if (step.do === 'drop') dropFolder(world, step)
  else if (step.do === 'rename') rename(world, step)
  else renumber(world, pathAt(world, step.folder), step.keeps)
}

/** Numbers hold for a session (RFC 9051 §2.3.1.1): those that have the folder open are ended. */
function renumber({ server, truth }: World, path: string, keeps: Deed<'renumber'>['keeps']): void {
  server.dropConnections()
  truth.renumbered(path)
  server.renumber('ann', path, ({ uid }) => keeps === 'all' || (keeps === 'some' && uid % 2 === 0))
}

function hide(world: World, { folder, forMs }: Deed<'hide'>, number: number): void {
  const { server, faults, time } = world
  const path = pathAt(world, folder)
  if (world.isNew(path)) world.truth.mayBeHistory(`n${number}`)
  faults.hide(path, server.folder('ann', path).uidNext, forMs)
  server.append('ann', path, letter(`n${number}`, time.now()), [], new Date(time.now()))
}

function reuse(world: World, { folder }: Deed<'reuse'>, number: number): void {
  const { server, time } = world
  const subject = `n${number}`
  world.truth.mayBeHistory(subject)
  server.reuse('ann', pathAt(world, folder), letter(subject, time.now()), new Date(time.now()))
}

async function append(world: World, { by, folder, flags }: Deed<'append'>, number: number): Promise<void> {
  const { server, time } = world
  const path = pathAt(world, folder)
  const raw = letter(`n${number}`, time.now())
  if (world.isNew(path)) world.truth.mayBeHistory(`n${number}`)
  if (by === 'them') server.append('ann', path, raw, flags, new Date(time.now()))
  else await ours(world, path, `n${number}`, (accounts, to) => accounts.append(to, letterOf(raw, flags)))
}

function create(world: World, { by, name }: Deed<'create'>): void {
  if (has(world, name)) return
  if (by === 'them') world.server.createFolder('ann', name)
  else world.give(`create ${name}`, (accounts) => accounts.createFolder(world.account.id, name))
}

function dropFolder(world: World, { by, folder }: Deed<'drop'>): void {
  const path = pathAt(world, folder)
  if (isFixed(path)) return
  if (by === 'them') world.server.deleteFolder('ann', path)
  else world.give(`drop ${path}`, (accounts) => accounts.deleteFolder(world.account.id, path))
}

function rename(world: World, { folder, name }: Deed<'rename'>): void {
  const path = pathAt(world, folder)
  if (!isFixed(path) && !has(world, name)) world.server.renameFolder('ann', path, name)
}

type Accounts = Parameters<Command>[0]

/** A command of ours that needs a folder of the index. */
async function ours(
  world: World,
  path: string,
  subject: string,
  command: (accounts: Accounts, to: FolderRecord) => Promise<unknown>,
): Promise<void> {
  const to = await world.store.folders.byPath(world.account.id, path)
  if (to !== null) world.give(`${subject} to ${path}`, (accounts) => command(accounts, to), subject)
}

async function toMessage(world: World, step: Deed<'flag' | 'remove' | 'move' | 'copy'>): Promise<void> {
  const place = placeAt(world, step.pick)
  if (place === null) return
  if (step.by === 'them') {
    theirs(world, step, place)
    return
  }
  const message = await world.message(place.subject)
  const at = message?.placements.find(({ path }) => path === place.path)
  if (message === null || at === undefined) return
  if (step.do === 'remove') world.truth.removedByUs(place.subject)
  if (step.do === 'flag' || step.do === 'remove') {
    world.give(`${step.do} ${place.subject}`, (accounts) => toPlace(accounts, step, message, at), place.subject)
    return
  }
  const path = pathAt(world, step.folder)
  await ours(world, path, place.subject, (accounts, to) =>
    step.do === 'move' ? accounts.move(message, at, to) : accounts.copy(message, at, to),
  )
}

function toPlace(
  accounts: Accounts,
  step: Deed<'flag' | 'remove'>,
  message: MessageRecord,
  at: Placement,
): Promise<unknown> {
  if (step.do === 'remove') return accounts.remove(message, null)
  const add: string[] = [...step.flags]
  const remove = at.flags.filter((flag) => !add.includes(flag))
  return accounts.setFlags(message, at, { add, remove })
}

function theirs(world: World, step: Deed<'flag' | 'remove' | 'move' | 'copy'>, { subject, path, uid }: Place): void {
  const { server, truth } = world
  if (step.do === 'flag') server.setFlags('ann', path, uid, step.flags)
  else if (step.do === 'remove') server.expunge('ann', path, uid)
  else {
    const to = pathAt(world, step.folder)
    const isThere = server.folder('ann', path).messages.some((one) => one.uid === uid)
    if (!isThere || truth.mailbox.get(subject)?.has(to) === true) return
    truth.placedByThem(subject)
    server.copy('ann', path, uid, to)
    if (step.do === 'move') server.expunge('ann', path, uid)
  }
}
