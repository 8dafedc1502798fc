/**
 * The model of an account (model/): what other mail programs and our own commands do to a mailbox while connections
 * break, answers are lost, views lag, folders are numbered anew and the process crashes. At every quiet point the index
 * is what the server has, counts are those of its rows, and the changes are what has happened: each told once, in
 * order, of messages that keep their ids. What fails is added to the list below as its counterexample is printed.
 */
import { checkModel } from './model/check.ts'
import type { Scenario } from './model/steps.ts'

const failedOnce: readonly Scenario[] = [
  // Our append beside a server that is only waiting for the clock.
  {
    server: 'all',
    inbox: 2,
    archive: 3,
    synced: true,
    steps: [
      { step: { do: 'create', by: 'them', name: 'Work' }, wait: true },
      { step: { do: 'quiet' }, wait: true },
      { step: { do: 'append', by: 'us', folder: 0, flags: ['\\Seen', 'work'] }, wait: false },
      { step: { do: 'pass', ms: 600_000 }, wait: true },
    ],
  },
  // A move while the other folders have yet to be looked at.
  {
    server: 'all',
    inbox: 2,
    archive: 1,
    synced: true,
    steps: [{ step: { do: 'move', by: 'them', pick: 2, folder: 2 }, wait: false }],
  },
  // A copy whose answer was lost, and our removal of the message before the copy is read.
  {
    server: 'plain',
    inbox: 1,
    archive: 1,
    synced: true,
    steps: [
      { step: { do: 'lose', loss: 'after', after: 5 }, wait: false },
      { step: { do: 'flag', by: 'us', pick: 28, flags: ['\\Seen', 'work'] }, wait: false },
      { step: { do: 'copy', by: 'us', pick: 13, folder: 1 }, wait: true },
      { step: { do: 'append', by: 'them', folder: 1, flags: ['\\Seen'] }, wait: false },
      { step: { do: 'remove', by: 'us', pick: 27 }, wait: true },
    ],
  },
]

checkModel(1, 50, failedOnce)
